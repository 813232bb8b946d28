import type { Instant } from '../clock.ts'
import type { ChangeSide, EmailChange } from './email-change.ts'

export interface EmailChangeStore {
  /** The account's pending change, also if it has expired. */
  find(userId: string): Promise<EmailChange | null>
  /** Stores it in place of an earlier one of the account, whose links stop working. */
  put(change: EmailChange): Promise<void>
  /**
   * Records the confirmation by the address whose token has this hash, if it has not expired; the first one decides the
   * time. Null, and nothing written, where there is no such change.
   */
  confirm(userId: string, side: ChangeSide, tokenHash: string, at: Instant): Promise<EmailChange | null>
  /** Deletes the account's; false where there was none. */
  remove(userId: string): Promise<boolean>
  /** Deletes those that expired before `before`, at most `batch`. Returns how many. */
  prune(before: Instant, batch: number): Promise<number>
}
