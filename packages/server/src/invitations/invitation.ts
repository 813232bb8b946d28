import { DAY, type Instant } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { UserRole } from '../users/user.ts'

export const INVITATION_LIFETIME = 7 * DAY

/** A role with rights that an invitation may give. */
export type InvitedRole = Exclude<UserRole, 'user'>

export const INVITATION_STATES = ['pending', 'accepted', 'expired', 'revoked'] as const
export type InvitationState = (typeof INVITATION_STATES)[number]

/**
 * Lets an address sign up for a week, and may give the account a role. It has no secret, so its mail contains no
 * credential: the next sign-in to the address, with a link or code that is mailed for it, accepts the invitation.
 */
export interface Invitation {
  id: string
  email: EmailAddress
  /** If null, the account gets no role with rights. */
  role: InvitedRole | null
  /** The id of the administrator who invited; null for the `keyway` command. */
  invitedBy: string | null
  createdAt: Instant
  expiresAt: Instant
  acceptedAt: Instant | null
  /** The account that accepted the invitation. */
  userId: string | null
  revokedAt: Instant | null
}

export function stateOf(
  { acceptedAt, revokedAt, expiresAt }: Pick<Invitation, 'acceptedAt' | 'revokedAt' | 'expiresAt'>,
  now: Instant,
): InvitationState {
  if (acceptedAt !== null) return 'accepted'
  if (revokedAt !== null) return 'revoked'
  return expiresAt <= now ? 'expired' : 'pending'
}
