import { HOUR, type Instant } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'

/** How long the two links of a change are valid. */
export const EMAIL_CHANGE_LIFETIME = HOUR
export const EMAIL_CHANGE_TOKEN_BYTES = 32

/** Which of the two addresses a link was mailed to. */
export type ChangeSide = 'old' | 'new'

/** A change of an account's address that both addresses must confirm. An account has at most one. */
export interface EmailChange {
  userId: string
  /** The session that requested the change: it survives the change, while all others end. */
  sessionId: string
  oldEmail: EmailAddress
  newEmail: EmailAddress
  oldTokenHash: string
  newTokenHash: string
  oldConfirmedAt: Instant | null
  newConfirmedAt: Instant | null
  createdAt: Instant
  expiresAt: Instant
}

export function unconfirmedSides({ oldConfirmedAt, newConfirmedAt }: EmailChange): ChangeSide[] {
  return [
    ...(oldConfirmedAt === null ? (['old'] as const) : []),
    ...(newConfirmedAt === null ? (['new'] as const) : []),
  ]
}

export function isPending({ expiresAt }: Pick<EmailChange, 'expiresAt'>, now: Instant): boolean {
  return now < expiresAt
}
