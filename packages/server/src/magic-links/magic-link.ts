import { type Instant, MINUTE, SECOND } from '../clock.ts'
import type { EmailAddress } from '../users/user.ts'

/** How long a link and its code are valid. */
export const MAGIC_LINK_LIFETIME = 5 * MINUTE
export const MAGIC_LINK_LIFETIME_SECONDS = MAGIC_LINK_LIFETIME / SECOND
export const MAGIC_LINK_TOKEN_BYTES = 32
export const LOGIN_CODE_DIGITS = 8
/** Wrong codes that one link bears; after them only the link itself works. */
export const MAX_CODE_TRIES = 5

/** One mailed link. Its id is the `login_id`, the only name under which its code can be redeemed; it is never logged. */
export interface MagicLink {
  id: string
  /** SHA-256 of the token. */
  tokenHash: string
  /** Keyed hash of the code: eight digits alone could be tried out from a dump. */
  codeHash: string
  email: EmailAddress
  appId: string
  createdAt: Instant
  expiresAt: Instant
  usedAt: Instant | null
  codeTries: number
}
