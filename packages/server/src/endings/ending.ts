import type { Instant } from '../clock.ts'

/**
 * Records that a key or session ended early, that an account was suspended or deleted, or that a key was restricted. It
 * is written in the transaction of that change. The hub's sweep, the revocation feed and the replay of a journal read
 * this record.
 */
export interface Ending {
  id: string
  kind: 'api_key' | 'session' | 'user'
  subjectId: string
  userId: string
  /** When the change takes effect: in the future for a rotated key that stays valid for a short overlap. */
  at: Instant
}
