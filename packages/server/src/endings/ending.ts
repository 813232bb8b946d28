import type { Instant } from '../clock.ts'

/**
 * That a key, a session or an account came to its end before its time, or a key's conditions became stricter.
 * Written in the transaction that ended it. The hub's sweep, the revocation feed and the journal all read
 * this one record, so none of them can know less than another.
 */
export interface Ending {
  id: string
  kind: 'api_key' | 'session' | 'user'
  subjectId: string
  userId: string
  /** Ahead of its writing where a rotated key ends after a short overlap. */
  at: Instant
}
