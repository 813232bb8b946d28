import { HOUR, type Instant, MINUTE, SECOND } from '../clock.ts'

/** An ended session of which its app must be told (OpenID Connect Back-Channel Logout 1.0). */
export interface LogoutNotice {
  /** The ended session; an app is told once of each. */
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
/** How long a node that called has to record the outcome, before another node calls. */
export const LEASE = MINUTE
