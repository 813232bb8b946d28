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

/** Operations that must leave facts; endings/facts.ts records these in the same transaction. */
export interface InvitationChanges {
  /** Accepts the pending invitation of an address. Null for all but one of concurrent callers. */
  accept(email: EmailAddress, userId: string, at: Instant): Promise<Invitation | null>
  /** Null, and nothing written, unless it was neither accepted nor revoked. */
  revoke(id: string, at: Instant): Promise<Invitation | null>
}

/** Administrative: only audited transactions have these operations. endings/facts.ts records their facts too. */
export interface AdministrativeInvitationChanges {
  /**
   * Inserts an invitation, revokes the pending ones of its address, and returns their ids. Only after `lockAddress`.
   */
  insert(invitation: Invitation): Promise<string[]>
}
