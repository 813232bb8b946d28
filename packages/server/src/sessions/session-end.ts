import { type ActedBy, type Audit, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Caller } from '../network.ts'
import type { Storage, Transaction } from '../store.ts'
import { parseRefreshToken } from './refresh-token.ts'
import type { Session, SessionEndCause } from './session.ts'

export interface SessionEndOperations {
  /** The session of a genuine refresh token, even if the token was rotated or the session has ended. Otherwise null. */
  ofRefreshToken(refreshToken: string): Promise<Session | null>
  /**
   * Ends the session of a refresh token, even if the token was rotated. True also if the session had ended before;
   * false if the token is not genuine.
   */
  endByToken(refreshToken: string, by: SessionEndCause, caller: Caller): Promise<boolean>
  /** Ends a session at its owner's request. @throws KeywayError `not_found` */
  end(userId: string, sessionId: string, caller: Caller): Promise<void>
  /**
   * Ends the page session that a new one in the same browser replaces. If the person is the same, sessions of apps that
   * were granted in the old one continue under the new one; otherwise they end too, except those with offline access.
   */
  replace(before: Session, after: Session, caller: Caller): Promise<void>
  /** Ends all sessions of a user except the given one; if that is null, all of them. */
  endOthers(userId: string, exceptSessionId: string | null, caller: Caller): Promise<void>
  /** Ends a session of a person, for an administrator. Idempotent. @throws KeywayError `not_found` */
  endOne(userId: string, sessionId: string, by: ActedBy): Promise<void>
  /** Ends all of a person's sessions, for an administrator. Returns their number. */
  endAll(userId: string, by: ActedBy): Promise<number>
}

export interface SessionEndDeps {
  storage: Storage
  audit: Audit
  clock: Clock
  secretOf(session: Session): Buffer
}

export function createSessionEnd({ storage, audit, clock, secretOf }: SessionEndDeps): SessionEndOperations {
  const { store } = storage

  return {
    ofRefreshToken,

    async endByToken(token, by, caller) {
      const session = await ofRefreshToken(token)
      if (!session) return false
      await end(session, by, caller)
      return true
    },

    async end(userId, sessionId, caller) {
      await end(await findOwnedSession(userId, sessionId), 'revoked', caller)
    },

    async replace(before, after, caller) {
      if (before.userId === after.userId) await store.sessions.moveToSignIn(before.id, after.id)
      await end(before, 'revoked', caller)
    },

    async endOthers(userId, exceptSessionId, caller) {
      await storage.transaction(tx =>
        tx.sessions.endAllOf(userId, 'revoked', exceptSessionId, { at: clock.now(), caller }),
      )
    },

    async endOne(userId, sessionId, by) {
      const session = await findOwnedSession(userId, sessionId)
      await audit.perform(by, async tx => {
        if (!(await endWithin(tx, session, 'revoked', null))) return withoutChanges(false)
        const subject = { type: 'user' as const, id: userId, user_id: userId }
        const after = { session_id: sessionId }
        return auditedOutcome(true, { type: 'user.sessions_ended', subject, before: null, after })
      })
    },

    endAll(userId, by) {
      return audit.perform(by, async tx => {
        const ids = await tx.sessions.endAllOf(userId, 'revoked', null, { at: clock.now(), caller: null })
        if (ids.length === 0) return withoutChanges(0)
        return auditedOutcome(ids.length, {
          type: 'user.sessions_ended',
          subject: { type: 'user', id: userId, user_id: userId },
          before: { sessions: ids.length },
          after: { sessions: 0 },
        })
      })
    },
  }

  async function ofRefreshToken(token: string): Promise<Session | null> {
    const credential = parseRefreshToken(token)
    const session = credential && (await store.sessions.find(credential.sessionId))
    if (!session || session.kind === 'page') return null
    return credential!.provenBy(secretOf(session)) ? session : null
  }

  /** Ends one session. Idempotent: time and cause of the first end are kept. */
  async function end(session: Session, by: SessionEndCause, caller: Caller): Promise<void> {
    await storage.transaction(
      async tx => {
        await endWithin(tx, session, by, caller)
        return true
      },
      async () => (await store.sessions.find(session.id))?.endedAt !== null || undefined,
    )
  }

  /**
   * Ends a session, and with a page session also the sessions of apps that were granted in it, except those with
   * offline access. False if it had ended before.
   */
  async function endWithin(
    tx: Transaction,
    { id }: Session,
    by: SessionEndCause,
    caller: Caller | null,
  ): Promise<boolean> {
    const now = clock.now()
    const endedSession = await tx.sessions.end(id, by, now, { at: now, caller })
    if (endedSession?.kind === 'page') await tx.sessions.endAllOfSignIn(id, { at: now, caller })
    return endedSession !== null
  }

  async function findOwnedSession(userId: string, sessionId: string): Promise<Session> {
    const session = await store.sessions.find(sessionId)
    if (session?.userId !== userId) throw new KeywayError('not_found', 'There is no such session.')
    return session
  }
}
