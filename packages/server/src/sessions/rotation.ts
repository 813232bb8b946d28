import type { Instant } from '../clock.ts'
import { isLive, type Session, type SessionLifetimes } from './session.ts'

/**
 * What a genuine refresh token is, held against its session:
 * - `current`: the one valid token; rotate it
 * - `retry`: its answer was lost; the successor, unused so far, may be given again
 * - `reused`: somebody else may have it; the session must end
 * - `dead`: refused, and nothing ends
 */
export type Standing = 'current' | 'retry' | 'reused' | 'dead'

/**
 * Judges a genuine token by its number. Rotating token n makes token n+1, so the current token counts how
 * often the session was refreshed, and a token that lies behind was rotated before.
 *
 * @param retryKey the hash of the request's Idempotency-Key, or null
 */
export function standingOf(
  session: Session,
  counter: number,
  retryKey: string | null,
  lifetimes: SessionLifetimes,
  now: Instant,
): Standing {
  const behind = session.counter - counter
  // A number ahead of ours was issued before a backup was restored.
  if (behind < 0) return 'dead'
  const honest = behind > 0 && retryKey !== null && session.retryKeys[behind - 1] === retryKey
  if (session.endedAt !== null) {
    return session.endedBy === 'reuse' && behind > 0 && !honest ? 'reused' : 'dead'
  }
  if (!isLive(session, lifetimes, now)) return 'dead'
  if (behind === 0) return 'current'
  if (honest) return behind === 1 ? 'retry' : 'dead'
  return behind === 1 && retryKey === null && inGrace(session, lifetimes, now) ? 'retry' : 'reused'
}

/** Grace is for clients that send no key at all: a rotation that carried one is retried with it or not at all. */
function inGrace(session: Session, lifetimes: SessionLifetimes, now: Instant): boolean {
  return session.retryKeys[0] === '' && now < session.lastUsedAt + lifetimes.refreshGraceSeconds * 1000
}
