import type { Instant } from '../clock.ts'

/**
 * Records that a key, session or account ended early, or that a key was restricted; written in the transaction that did
 * so. The hub's sweep, the revocation feed and the journal all use this record.
 */
export interface Ending {
  id: string
  kind: 'api_key' | 'session' | 'user'
  subjectId: string
  userId: string
  /** In the future for a rotated key with a short overlap. */
  at: Instant
}
