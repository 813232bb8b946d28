import { type Instant, MINUTE } from '../clock.ts'

/** How long a code may be redeemed; RFC 6749 section 4.1.2 allows ten minutes, clients need seconds. */
export const CODE_LIFETIME = MINUTE
/** Prefix of authorization codes, so that people and secret scanners recognise them. */
export const CODE_PREFIX = 'svo_'
export const CODE_BYTES = 32

/** An authorization code and what its client may redeem it for, once. */
export interface AuthorizationCode {
  /** SHA-256 of the code. */
  codeHash: string
  appId: string
  userId: string
  /** The session of the pages in which the person was signed in. */
  signInId: string
  /** The redirect URI of the request, which the token request must repeat; null: the request named none. */
  redirectUri: string | null
  scopes: string[]
  /** The asked audience; null: this service. */
  audience: string | null
  nonce: string | null
  /** The code challenge of PKCE with S256 (RFC 7636); null: the request had none. */
  codeChallenge: string | null
  /** When the person signed in. */
  authTime: Instant
  /** The person's browser, not the client that redeems the code. */
  network: string
  client: string | null
  /** The pushed request that it answers (RFC 9126), which is good for one code. */
  pushedId: string | null
  createdAt: Instant
  expiresAt: Instant
  usedAt: Instant | null
  /** The session that it opened. */
  sessionId: string | null
}
