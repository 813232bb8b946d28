import { type Instant, MINUTE } from '../clock.ts'

/** How long a code may be redeemed; RFC 6749 section 4.1.2 allows ten minutes, clients need seconds. */
export const CODE_LIFETIME = MINUTE
/** Prefix of authorization codes, so that people and secret scanners recognise them. */
export const CODE_PREFIX = 'svo_'
export const CODE_BYTES = 32

/** An authorization code and what its client may redeem it for, once. */
export interface AuthorizationCode {
  codeHash: string
  appId: string
  userId: string
  /** The id of the session in which the person was signed in to this service's pages. */
  signInId: string
  /** The redirect URI that the request named, which a token request without PKCE must repeat; null if it named none. */
  redirectUri: string | null
  scopes: string[]
  /** The requested audience; null for this service. */
  audience: string | null
  nonce: string | null
  /** The code challenge of PKCE with S256 (RFC 7636); null if the request had none. */
  codeChallenge: string | null
  /** When the person signed in. */
  authTime: Instant
  /** The network of the person's browser, not of the client that redeems the code. */
  network: string
  client: string | null
  /** The id of the pushed request (RFC 9126) that the code answers; a pushed request is answered by one code only. */
  pushedId: string | null
  createdAt: Instant
  expiresAt: Instant
  usedAt: Instant | null
  /** The session that the code opened. */
  sessionId: string | null
}
