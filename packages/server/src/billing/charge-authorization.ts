import type { Instant } from '../clock.ts'

/** A user's permission for an app to charge the balance. */
export interface ChargeAuthorization {
  userId: string
  appId: string
  /** The app's registered name. */
  name: string
  grantedAt: Instant
  revokedAt: Instant | null
}
