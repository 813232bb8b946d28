import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { Invitation } from './invitation.ts'

export interface InvitationStore {
  find(id: string): Promise<Invitation | null>
  /** The pending invitation of an address; there is one at most. */
  findPending(email: EmailAddress, now: Instant): Promise<Invitation | null>
  /** Lists invitations, newest first. */
  list(page: PageRequest): Promise<Slice<Invitation>>
  /** Deletes all invitations of an address. */
  forgetAddress(email: EmailAddress): Promise<void>
  /** Deletes at most `batch` invitations that expired before `expiredBefore`. Returns how many it deleted. */
  prune(expiredBefore: Instant, batch: number): Promise<number>
}

/** Changes. Their transaction also records what other nodes, people, webhooks and the journal learn of them (endings/facts.ts). */
export interface InvitationChanges {
  /** Accepts the pending invitation of an address. Null for all but one of concurrent callers. */
  accept(email: EmailAddress, userId: string, at: Instant): Promise<Invitation | null>
  /** Returns null and writes nothing if the invitation is unknown or was accepted or revoked before. */
  revoke(id: string, at: Instant): Promise<Invitation | null>
}

/** Changes by administrators, which only audited transactions have. endings/facts.ts defines what they record. */
export interface AdministrativeInvitationChanges {
  /**
   * Inserts an invitation, revokes the pending ones of its address, and returns the ids of the revoked ones. The
   * transaction must have called `lockAddress` before.
   */
  insert(invitation: Invitation): Promise<string[]>
}
