import type { Clock, Instant } from '../clock.ts'
import { KeywayError, unavailable } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Storage } from '../store.ts'
import type { User } from '../users/user.ts'
import { parseRefreshToken, retryKeyHash } from './refresh-token.ts'
import { REMEMBERED_RETRY_KEYS, type Session } from './session.ts'
import { recordEnd } from './session-end.ts'
import { isLive, type SessionLifetimes } from './session-lifetime.ts'

interface Family {
  session: Session
  user: User
}

interface RefreshDeps {
  storage: Storage
  clock: Clock
  outbox: Outbox
  lifetimes: SessionLifetimes
  secretOf(session: Session): Buffer
}

/** Losing the race for a rotation is settled by one more look; more only where the clock passes an end meanwhile. */
const MAX_LOOKS = 3

/**
 * Rotates refresh tokens (RFC 9700 section 4.14.2). One conditional update decides between callers; what it
 * did not decide is judged from the row as it is afterwards. Ending a reused family is a transaction of its
 * own that commits before the caller is refused.
 */
export function createRefresh({ storage, clock, outbox, lifetimes, secretOf }: RefreshDeps) {
  const { sessions } = storage.store

  return async function refresh(token: string, retryKey: string | null, caller: Caller): Promise<Family> {
    const claimed = parseRefreshToken(token)
    if (!claimed) throw invalid()
    const retry = retryKey === null ? null : retryKeyHash(retryKey)

    for (let look = 0; look < MAX_LOOKS; look++) {
      const family = await sessions.findWithUser(claimed.sessionId)
      if (family?.session.kind !== 'api' || !claimed.provenBy(secretOf(family.session))) throw invalid()
      if (family.user.status !== 'active') throw invalid()

      const standing = standingOf(family.session, claimed.counter, retry, lifetimes, clock.now())
      if (standing === 'dead') throw invalid()
      if (standing === 'retry') return family
      if (standing === 'reused') {
        await endFamily(family, caller)
        throw new KeywayError(
          'refresh_token_reused',
          'This refresh token was used before, so its session has ended. Sign in again.',
        )
      }
      const rotated = await rotate(family.session, retry)
      if (rotated) return { session: rotated, user: family.user }
    }
    throw unavailable(new Error('the session changed with every look'))
  }

  function rotate(session: Session, retry: string | null): Promise<Session | null> {
    return storage.inTurn([`session:${session.id}`], () => {
      const now = clock.now()
      return sessions.rotate(session.id, session.counter, {
        at: now,
        idleSince: now - lifetimes.refreshIdleSeconds * 1000,
        retryKeys: [retry ?? '', ...session.retryKeys].slice(0, REMEMBERED_RETRY_KEYS),
      })
    })
  }

  /** Once, however often the token comes back: the event, the feed and the owner's mail are the first's. */
  async function endFamily({ session, user }: Family, caller: Caller): Promise<void> {
    if (session.endedAt !== null) return
    const mailId = newId(clock.now())
    await storage.inTurn([`session:${session.id}`], () =>
      storage.transaction(
        async tx => {
          const now = clock.now()
          if (!(await tx.sessions.end(session.id, 'reuse', now))) return true
          await recordEnd(tx, 'refresh_token_reused', session, caller, now)
          if (user.email === null) return true
          await outbox.enqueue(tx, {
            id: mailId,
            recipient: user.email,
            userId: user.id,
            content: {
              kind: 'refresh_token_reused',
              at: now,
              network: caller.network,
              client: caller.client,
            },
            now,
          })
          return true
        },
        async () => (await sessions.find(session.id))?.endedAt !== null || undefined,
      ),
    )
  }
}

function invalid(): KeywayError {
  return new KeywayError(
    'invalid_refresh_token',
    'The refresh token is not valid, or its session has ended. Sign in again.',
  )
}

/**
 * What a genuine refresh token is, held against its session:
 * - `current`: the one valid token; rotate it
 * - `retry`: its answer was lost; the successor, unused so far, may be given again
 * - `reused`: somebody else may have it; the session must end
 * - `dead`: refused, and nothing ends
 */
type Standing = 'current' | 'retry' | 'reused' | 'dead'

/**
 * Judges a genuine token by its number. Rotating token n makes token n+1, so the current token counts how
 * often the session was refreshed, and a token that lies behind was rotated before.
 *
 * @param retryKey the hash of the request's Idempotency-Key, or null
 */
function standingOf(
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
