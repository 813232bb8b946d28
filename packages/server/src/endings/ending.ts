import type { Instant } from '../clock.ts'

/**
 * Records that a key, session or account ended early, or that a key was restricted. It is written in the transaction
 * that ended or restricted it. The hub's sweep, the revocation feed and the journal all read this record.
 */
export interface Ending {
  id: string
  kind: 'api_key' | 'session' | 'user'
  subjectId: string
  userId: string
  /** When it ended or was restricted. In the future for a rotated key that stays valid for a short overlap. */
  at: Instant
}
