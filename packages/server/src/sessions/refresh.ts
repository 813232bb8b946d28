import type { Clock } from '../clock.ts'
import { KeywayError, unavailable } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Storage } from '../store.ts'
import type { User } from '../users/user.ts'
import { parseRefreshToken, retryKeyHash } from './refresh-token.ts'
import { standingOf } from './rotation.ts'
import { REMEMBERED_RETRY_KEYS, type Session, type SessionLifetimes } from './session.ts'
import { recordEnd } from './session-end.ts'

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
    const now = clock.now()
    return sessions.rotate(session.id, session.counter, {
      at: now,
      idleSince: now - lifetimes.refreshIdleSeconds * 1000,
      retryKeys: [retry ?? '', ...session.retryKeys].slice(0, REMEMBERED_RETRY_KEYS),
    })
  }

  /** Once, however often the token comes back: the event, the feed and the owner's mail are the first's. */
  async function endFamily({ session, user }: Family, caller: Caller): Promise<void> {
    const mailId = newId(clock.now())
    await storage.transaction(
      async tx => {
        const now = clock.now()
        if (!(await tx.sessions.end(session.id, 'reuse', now))) return true
        await recordEnd(tx, 'refresh_token_reused', session, caller, now)
        if (user.email === null) return true
        await outbox.enqueue(tx, {
          id: mailId,
          recipient: user.email,
          userId: user.id,
          content: { kind: 'refresh_token_reused', at: now, network: caller.network, client: caller.client },
          now,
        })
        return true
      },
      async () => (await sessions.find(session.id))?.endedAt !== null || undefined,
    )
  }
}

function invalid(): KeywayError {
  return new KeywayError(
    'invalid_refresh_token',
    'The refresh token is not valid, or its session has ended. Sign in again.',
  )
}
