import { type Audit, type By, performed, unchanged } from '../audit/audit.ts'
import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Caller } from '../network.ts'
import type { Storage } from '../store.ts'
import { parseRefreshToken } from './refresh-token.ts'
import type { Session, SessionEnd } from './session.ts'

export interface SessionEnding {
  /** The session of a genuine refresh token, rotated or not, ended or not. */
  ofRefreshToken(refreshToken: string): Promise<Session | null>
  /** Ends the session of this refresh token, rotated or not. False when there is none. */
  endByToken(refreshToken: string, by: SessionEnd, caller: Caller): Promise<boolean>
  /** @throws KeywayError `not_found` */
  end(userId: string, sessionId: string, caller: Caller): Promise<void>
  /**
   * Ends the page session that a new one of the same browser replaces. What apps got in it stays, if it is the same
   * person's.
   */
  replace(before: Session, after: Session, caller: Caller): Promise<void>
  endOthers(userId: string, exceptSessionId: string | null, caller: Caller): Promise<void>
  /** Ends all of a person's sessions, for an administrator. Returns how many. */
  endAll(userId: string, by: By): Promise<number>
}

export interface SessionEndDeps {
  storage: Storage
  audit: Audit
  clock: Clock
  secretOf(session: Session): Buffer
}

/** Ends sessions before they expire: by their refresh token, by their owner, or all but one. */
export function createSessionEnd({ storage, audit, clock, secretOf }: SessionEndDeps): SessionEnding {
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
      const session = await store.sessions.find(sessionId)
      if (session?.userId !== userId) throw new KeywayError('not_found', 'There is no such session.')
      await end(session, 'revoked', caller)
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

    endAll(userId, by) {
      return audit.perform(by, async tx => {
        const ids = await tx.sessions.endAllOf(userId, 'revoked', null, { at: clock.now(), caller: null })
        if (ids.length === 0) return unchanged(0)
        return performed(ids.length, {
          type: 'user.sessions_ended',
          subject: { type: 'user', id: userId, user_id: userId },
          before: { sessions: ids.length },
          after: { sessions: 0 },
        })
      })
    },
  }

  async function ofRefreshToken(token: string): Promise<Session | null> {
    const claimed = parseRefreshToken(token)
    const session = claimed && (await store.sessions.find(claimed.sessionId))
    if (!session || session.kind === 'page') return null
    return claimed!.provenBy(secretOf(session)) ? session : null
  }

  /** Ends one session. Idempotent: the first end is kept. */
  async function end(session: Session, by: SessionEnd, caller: Caller): Promise<void> {
    await storage.transaction(
      async tx => {
        const now = clock.now()
        const ended = await tx.sessions.end(session.id, by, now, { at: now, caller })
        if (ended?.kind === 'page') await tx.sessions.endAllOfSignIn(session.id, { at: now, caller })
        return true
      },
      async () => (await store.sessions.find(session.id))?.endedAt !== null || undefined,
    )
  }
}
