import type { Instant } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { Suppression } from './suppression.ts'

export interface SuppressionStore {
  /** Inserts the suppression, or extends the address's existing one; never shortens it. */
  record(suppression: Suppression): Promise<void>
  /** The suppression that is active at `now`, or null. */
  find(address: EmailAddress, now: Instant): Promise<Suppression | null>
  /** Active suppressions in the order of their addresses, from the first one that sorts after `after`, if not null. */
  list(after: EmailAddress | null, now: Instant, limit: number): Promise<Suppression[]>
  /** Deletes the suppression. Returns false if there was none. */
  lift(address: EmailAddress): Promise<boolean>
  prune(until: Instant, batch: number): Promise<number>
}
