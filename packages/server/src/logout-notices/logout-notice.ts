import { HOUR, type Instant, MINUTE, SECOND } from '../clock.ts'

/** The task to notify an app of the end of one of its sessions (OpenID Connect Back-Channel Logout 1.0). */
export interface LogoutNotice {
  /** The ended session; its app is notified once. */
  sessionId: string
  appId: string
  userId: string
  createdAt: Instant
  /** Number of failed calls, and of attempts without a call because the app had not answered an earlier notice. */
  attempts: number
  nextAttemptAt: Instant
}

/**
 * The delays after the first, second … failed attempt. If the attempt after the last delay fails too, the notice is
 * dropped.
 */
export const RETRY_DELAYS = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR]
/** How long a notice is leased to the node that delivers it; after that another node may call the app. */
export const LEASE = MINUTE
