import { DAY, HOUR, type Instant, MINUTE, SECOND } from '../clock.ts'

/** The task to notify an app of the end of one of its sessions (OpenID Connect Back-Channel Logout 1.0). */
export interface LogoutNotice {
  /** The ended session; its app is notified once. */
  sessionId: string
  appId: string
  userId: string
  createdAt: Instant
  /** Number of failed calls. */
  attempts: number
  nextAttemptAt: Instant
}

/**
 * The delays after the first, second … failed attempt. If the attempt after the last delay fails too, the notice is
 * dropped.
 */
export const RETRY_DELAYS = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR]
/** A notice that has waited for so long because its app did not answer earlier ones is dropped too. */
export const MAX_AGE = DAY
/** How long a notice is leased to the node that delivers it; after that another node may call the app. */
export const LEASE = MINUTE
