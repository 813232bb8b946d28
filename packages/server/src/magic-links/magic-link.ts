import { type Instant, MINUTE, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Secrets } from '../secrets.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { type ErasedAddress, matchesAddress } from '../users/erased-address.ts'

/** How long a link and its code are valid. */
export const MAGIC_LINK_LIFETIME = 5 * MINUTE
export const MAGIC_LINK_LIFETIME_SECONDS = MAGIC_LINK_LIFETIME / SECOND
export const MAGIC_LINK_TOKEN_BYTES = 32

/** One mailed link. Its id, which is never logged, is the `login_id` that redeeming its code requires. */
export interface MagicLink {
  id: string
  /** SHA-256 of the token. */
  tokenHash: string
  /** Keyed hash of the code; see login-code.ts. */
  codeHash: string
  /**
   * The address, or the hash that replaced it when its account was deleted or changed its address. A link with such a
   * hash is never live.
   */
  email: EmailAddress | ErasedAddress
  appId: string
  createdAt: Instant
  expiresAt: Instant
  usedAt: Instant | null
  /** Number of wrong codes that were typed for this link. */
  codeTries: number
  /** The requested language (BCP 47), which a new account keeps. */
  locale: string | null
}

/** A used link counts as used even after it expired. A link is expired from the millisecond of its `expiresAt` on. */
export function linkState(
  link: Pick<MagicLink, 'usedAt' | 'expiresAt'>,
  now: Instant,
): 'live' | 'used' | 'expired' {
  if (link.usedAt !== null) return 'used'
  return link.expiresAt <= now ? 'expired' : 'live'
}

/** Whether the link was mailed to this address and, if an app is given, for this app. */
export function belongsTo(
  secrets: Secrets,
  link: MagicLink,
  { email, appId }: { email: EmailAddress; appId?: string },
): boolean {
  return (appId === undefined || appId === link.appId) && matchesAddress(secrets, email, link.email)
}

export type LinkRefusal =
  | 'magic_link_invalid'
  | 'magic_link_expired'
  | 'magic_link_used'
  | 'account_suspended'
  /** The address has no account, and the policies do not let it sign up. */
  | 'forbidden'

const REFUSALS: Record<LinkRefusal, string> = {
  magic_link_invalid: 'This sign-in link or code is not valid for this address. Ask for a new one.',
  magic_link_expired: 'This sign-in link has expired. Ask for a new one.',
  magic_link_used: 'This sign-in link was used already. Ask for a new one.',
  account_suspended: 'This account is suspended.',
  forbidden:
    'This address has no account, and sign-up is not open to it. Ask the operator for an invitation.',
}

export function linkRefusalError(code: LinkRefusal): KeywayError {
  return new KeywayError(code, REFUSALS[code])
}

export interface LinkToken {
  token: string
  email: EmailAddress
  appId?: string
  /** The `login_id`s of links that this browser provably requested. */
  requestedLoginIds?: readonly string[]
}

export interface TypedCode {
  loginId: string
  code: string
  email: EmailAddress
  appId?: string
  /** Whether this browser is recognised: it proved an earlier sign-in to the address; see code-limits.ts. */
  isReturning?: boolean
}

export type MagicLinkProof = LinkToken | TypedCode
