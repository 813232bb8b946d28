import type { Instant } from '../clock.ts'
import type { ChangeSide, EmailChange } from './email-change.ts'

export interface EmailChangeStore {
  /** The account's change that awaits confirmation, even if it has expired. */
  find(userId: string): Promise<EmailChange | null>
  /** Stores a change in place of an earlier one of the same account, whose links stop working. */
  put(change: EmailChange): Promise<void>
  /**
   * Records the confirmation by the address whose token has this hash; a repeated confirmation keeps the time of the
   * first. Returns null and writes nothing if there is no such change or it has expired.
   */
  confirm(userId: string, side: ChangeSide, tokenHash: string, at: Instant): Promise<EmailChange | null>
  /** Deletes the account's change; false if there was none. */
  remove(userId: string): Promise<boolean>
  /** Deletes changes that expired before `before`, at most `batch`. Returns how many. */
  prune(before: Instant, batch: number): Promise<number>
}
