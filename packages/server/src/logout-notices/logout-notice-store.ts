import type { Instant } from '../clock.ts'
import type { LogoutNotice } from './logout-notice.ts'

export interface LogoutNoticeStore {
  /** Queues a notice for each of these sessions whose app has a back-channel logout URI. Returns their number. */
  queue(sessionIds: readonly string[], at: Instant): Promise<number>
  isAnyDue(now: Instant): Promise<boolean>
  /** Leases at most `limit` due notices: no other caller gets them before `leasedUntil`. */
  lease(now: Instant, leasedUntil: Instant, limit: number): Promise<LogoutNotice[]>
  /** Records a failed call to the app, and when the next one is due. */
  postpone(sessionId: string, nextAttemptAt: Instant): Promise<void>
  remove(sessionId: string): Promise<void>
}
