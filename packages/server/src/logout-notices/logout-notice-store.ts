import type { Instant } from '../clock.ts'
import type { LogoutNotice } from './logout-notice.ts'

export interface LogoutNoticeStore {
  /** Queues a notice for each of these sessions whose app has a back-channel logout URI. Returns their number. */
  queue(sessionIds: readonly string[], at: Instant): Promise<number>
  isAnyDue(now: Instant): Promise<boolean>
  /** At most `limit` notices that are due; no other caller gets them before `leasedUntil`. */
  lease(now: Instant, leasedUntil: Instant, limit: number): Promise<LogoutNotice[]>
  /** Sets when the next call is due, and counts the failed one. */
  postpone(sessionId: string, nextAttemptAt: Instant): Promise<void>
  remove(sessionId: string): Promise<void>
}
