import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { Invitation } from './invitation.ts'

export interface InvitationStore {
  find(id: string): Promise<Invitation | null>
  /** The pending invitation of an address; there is one at most. */
  findPending(email: EmailAddress, now: Instant): Promise<Invitation | null>
  /** Newest first. */
  list(page: PageRequest): Promise<Slice<Invitation>>
  /** Deletes all invitations of an address. */
  forgetAddress(email: EmailAddress): Promise<void>
  /** Deletes invitations that expired before this instant. Returns how many. */
  prune(expiredBefore: Instant, batch: number): Promise<number>
}

/** Changes that endings/facts.ts also records (endings, security events, journal), in the same transaction. */
export interface InvitationChanges {
  /** Accepts the pending invitation of an address. Null for all but one of concurrent callers. */
  accept(email: EmailAddress, userId: string, at: Instant): Promise<Invitation | null>
  /** Null, and nothing written, if the invitation is unknown or was accepted or revoked before. */
  revoke(id: string, at: Instant): Promise<Invitation | null>
}

/** Administrative: only audited transactions have these operations. endings/facts.ts records their facts too. */
export interface AdministrativeInvitationChanges {
  /**
   * Inserts an invitation, revokes the pending ones of its address, and returns the ids of the revoked ones. The
   * transaction must have called `lockAddress` before.
   */
  insert(invitation: Invitation): Promise<string[]>
}
