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

/** Changes of invitations. Their transaction also records them for the journal (endings/facts.ts). */
export interface InvitationChanges {
  /** Accepts the pending invitation of an address. Null if there is none, or a concurrent caller accepted it first. */
  accept(email: EmailAddress, userId: string, at: Instant): Promise<Invitation | null>
  /** Returns null and writes nothing if the invitation is unknown or was accepted or revoked before. */
  revoke(id: string, at: Instant): Promise<Invitation | null>
}

/** Changes by administrators, which only audited transactions have. endings/facts.ts defines what they record. */
export interface AdministrativeInvitationChanges {
  /**
   * Inserts an invitation, revokes the earlier ones of its address that were neither accepted nor revoked (expired ones
   * too), and returns the ids of those. The transaction must have called `lockAddress` before.
   */
  insert(invitation: Invitation): Promise<string[]>
}
