import { type Instant, MINUTE, SECOND } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { ErasedAddress } from '../users/erased-address.ts'

/** How long a link and its code are valid. */
export const MAGIC_LINK_LIFETIME = 5 * MINUTE
export const MAGIC_LINK_LIFETIME_SECONDS = MAGIC_LINK_LIFETIME / SECOND
export const MAGIC_LINK_TOKEN_BYTES = 32

/** One mailed link. Its id is the `login_id`, the only name under which its code can be redeemed; it is never logged. */
export interface MagicLink {
  id: string
  /** SHA-256 of the token. */
  tokenHash: string
  /** Keyed hash of the code; see login-code.ts. */
  codeHash: string
  /** Or what was left of it when its account was deleted; such a link is never live. */
  email: EmailAddress | ErasedAddress
  appId: string
  createdAt: Instant
  expiresAt: Instant
  usedAt: Instant | null
  codeTries: number
}

/** Used outranks expired. A link has expired from the very millisecond of its `expiresAt`. */
export function linkState(
  link: Pick<MagicLink, 'usedAt' | 'expiresAt'>,
  now: Instant,
): 'live' | 'used' | 'expired' {
  if (link.usedAt !== null) return 'used'
  return link.expiresAt <= now ? 'expired' : 'live'
}
