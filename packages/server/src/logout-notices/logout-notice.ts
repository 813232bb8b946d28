import { HOUR, type Instant, MINUTE, SECOND } from '../clock.ts'

/** An ended session of which its app is to be notified (OpenID Connect Back-Channel Logout 1.0). */
export interface LogoutNotice {
  /** The ended session; its app is notified once. */
  sessionId: string
  appId: string
  userId: string
  createdAt: Instant
  /** Calls that failed. */
  attempts: number
  nextAttemptAt: Instant
}

/** Waits after the first, second … failed call; after the last one the notice is given up. */
export const RETRY_AFTER = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR]
/** How long a notice is leased to the node that delivers it; after that another node may call. */
export const LEASE = MINUTE
