import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { Invitation } from './invitation.ts'

export interface InvitationStore {
  find(id: string): Promise<Invitation | null>
  /** The pending one of an address; there is one at most. */
  findPending(email: EmailAddress, now: Instant): Promise<Invitation | null>
  /** Newest first. */
  list(page: PageRequest): Promise<Slice<Invitation>>
  /** Deletes all of an address. */
  forgetAddress(email: EmailAddress): Promise<void>
  /** Deletes those that expired before this. Returns how many. */
  prune(expiredBefore: Instant, batch: number): Promise<number>
}

/** Recorded by endings/facts.ts in the transaction that calls them. */
export interface InvitationChanges {
  /** Accepts the pending one of an address. Null for all but one of concurrent callers. */
  accept(email: EmailAddress, userId: string, at: Instant): Promise<Invitation | null>
  /** Null, and nothing written, unless it was neither accepted nor revoked. */
  revoke(id: string, at: Instant): Promise<Invitation | null>
}

/** Administrative: only audited transactions have these. Recorded by endings/facts.ts too. */
export interface AdministrativeInvitationChanges {
  /** Revokes the pending ones of the address, and returns their ids. Only after `lockAddress`. */
  insert(invitation: Invitation): Promise<string[]>
}
