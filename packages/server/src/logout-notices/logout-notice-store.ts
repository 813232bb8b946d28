import type { Instant } from '../clock.ts'
import type { LogoutNotice } from './logout-notice.ts'

export interface LogoutNoticeStore {
  /**
   * Queues a notice for each of these sessions that belongs to an app with a back-channel logout URI, unless one is
   * queued already. Returns the number of new notices.
   */
  queue(sessionIds: readonly string[], at: Instant): Promise<number>
  isAnyDue(now: Instant): Promise<boolean>
  /** Leases at most `limit` due notices: no other caller gets them before `leasedUntil`. */
  lease(now: Instant, leasedUntil: Instant, limit: number): Promise<LogoutNotice[]>
  /** Counts a failed call, and sets the time of the next attempt. */
  retry(sessionId: string, nextAttemptAt: Instant): Promise<void>
  /** Sets the time of the next attempt of a notice that was not sent. */
  defer(sessionId: string, nextAttemptAt: Instant): Promise<void>
  remove(sessionId: string): Promise<void>
}
