import type { Clock, Instant } from '../clock.ts'
import { KeywayError, unavailable } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Storage } from '../store.ts'
import type { User } from '../users/user.ts'
import { parseRefreshToken, retryKeyHash } from './refresh-token.ts'
import { REMEMBERED_RETRY_KEYS, type Session } from './session.ts'
import { isLive, type SessionLifetimes } from './session-lifetime.ts'

/** A token family: one session, with its user. */
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

/** A call that loses the race to rotate tries again with the row that the winner wrote. A third attempt is a margin. */
const MAX_ATTEMPTS = 3

/**
 * Rotates refresh tokens (RFC 9700 section 4.14.2). One conditional update picks the winner of concurrent calls; the
 * others then read the row that it left. On reuse the family is ended in a separate transaction, which commits before
 * the error is returned.
 */
export function createRefresh({ storage, clock, outbox, lifetimes, secretOf }: RefreshDeps) {
  const { sessions } = storage.store

  return async function refresh(
    token: string,
    holder: TokenHolder,
    retryKey: string | null,
    caller: Caller,
  ): Promise<Family> {
    const credential = parseRefreshToken(token)
    if (!credential) throw invalidRefreshToken()
    const retryHash = retryKey === null ? null : retryKeyHash(retryKey)

    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const family = await sessions.findWithUser(credential.sessionId)
      if (!family || !isHeldBy(holder, family.session)) throw invalidRefreshToken()
      if (!credential.provenBy(secretOf(family.session))) throw invalidRefreshToken()
      if (family.user.status !== 'active') throw invalidRefreshToken()

      const state = stateOf(family.session, credential.counter, retryHash, lifetimes, clock.now())
      if (state === 'dead') throw invalidRefreshToken()
      if (state === 'retry') return family
      if (state === 'reused') {
        await endFamily(family, caller)
        throw new KeywayError(
          'refresh_token_reused',
          'This refresh token was used before, so its session has ended. Sign in again.',
        )
      }
      const rotatedSession = await rotate(family.session, retryHash)
      if (rotatedSession) return { session: rotatedSession, user: family.user }
    }
    throw unavailable(new Error('the session changed at every attempt'))
  }

  function rotate(session: Session, retryHash: string | null): Promise<Session | null> {
    return storage.runExclusive([`session:${session.id}`], () => {
      const now = clock.now()
      return sessions.rotate(session.id, session.counter, {
        at: now,
        idleSince: now - lifetimes.refreshIdleSeconds * 1000,
        retryKeys: [retryHash ?? '', ...session.retryKeys].slice(0, REMEMBERED_RETRY_KEYS),
      })
    })
  }

  /** Idempotent: security event, ending and mail are written only the first time that a used token is presented. */
  async function endFamily({ session, user }: Family, caller: Caller): Promise<void> {
    if (session.endedAt !== null) return
    const mailId = newId(clock.now())
    await storage.runExclusive([`session:${session.id}`], () =>
      storage.transaction(
        async tx => {
          const now = clock.now()
          const endedSession = await tx.sessions.end(session.id, 'reuse', now, { at: now, caller })
          if (!endedSession || user.email === null) return true
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

/** Who presents the token: the client of a person's sign-in, or an authenticated app. */
export type TokenHolder = { kind: 'api' } | { kind: 'app'; appId: string }

function isHeldBy(holder: TokenHolder, { kind, appId }: Session): boolean {
  return holder.kind === kind && (holder.kind === 'api' || holder.appId === appId)
}

export function invalidRefreshToken(): KeywayError {
  return new KeywayError(
    'invalid_refresh_token',
    'The refresh token is not valid, or its session has ended. Sign in again.',
  )
}

/**
 * State of a genuine refresh token within its session:
 * - `current`: the one valid token; rotate it
 * - `retry`: its response was lost; the successor was not used yet and may be returned again
 * - `reused`: it may have leaked; the session must end
 * - `dead`: refused without ending the session
 */
type TokenState = 'current' | 'retry' | 'reused' | 'dead'

/**
 * Determines the state of a genuine token from its counter. Rotating token n issues token n+1, so a token with a lower
 * counter than the session's was rotated before.
 *
 * @param retryHash the hash of the request's Idempotency-Key, or null
 */
function stateOf(
  session: Session,
  counter: number,
  retryHash: string | null,
  lifetimes: SessionLifetimes,
  now: Instant,
): TokenState {
  const rotationsSince = session.counter - counter
  // A token with a higher counter than the session's was issued after the backup from which the database was restored.
  if (rotationsSince < 0) return 'dead'
  const isRetry =
    rotationsSince > 0 && retryHash !== null && session.retryKeys[rotationsSince - 1] === retryHash
  if (session.endedAt !== null) {
    return session.endedBy === 'reuse' && rotationsSince > 0 && !isRetry ? 'reused' : 'dead'
  }
  if (!isLive(session, lifetimes, now)) return 'dead'
  if (rotationsSince === 0) return 'current'
  if (isRetry) return rotationsSince === 1 ? 'retry' : 'dead'
  const mayRetryWithoutKey = retryHash === null && isInGracePeriod(session, lifetimes, now)
  return rotationsSince === 1 && mayRetryWithoutKey ? 'retry' : 'reused'
}

/**
 * The grace period is for clients that send no Idempotency-Key; a rotation with such a key can only be retried with the
 * same key. A period of zero disables it, even on a node whose clock is behind that of the node that rotated the token.
 */
function isInGracePeriod(session: Session, { refreshGraceSeconds }: SessionLifetimes, now: Instant): boolean {
  if (refreshGraceSeconds === 0 || session.retryKeys[0] !== '') return false
  return now < session.lastUsedAt + refreshGraceSeconds * 1000
}
