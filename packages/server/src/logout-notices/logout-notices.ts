import { type App, isSelfDescribed } from '../apps/app.ts'
import { type Clock, SECOND } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { SigningAlg } from '../signing-keys/signing-key.ts'
import type { Storage } from '../store.ts'
import { LEASE, type LogoutNotice, RETRY_AFTER } from './logout-notice.ts'

/** OpenID Connect Back-Channel Logout 1.0 section 2.4. */
const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
/** Short, since the token is used at once. In seconds. */
const LOGOUT_TOKEN_SECONDS = 120
/** Number of notices that one node delivers concurrently. */
const BATCH = 20

export interface LogoutNotices {
  /** Calls the apps of all notices that are due. Resolves when none is left for now. */
  deliver(): Promise<void>
}

export interface LogoutNoticeDeps {
  storage: Storage
  clock: Clock
  jwt: Jwt
  publicUrl: string
  log: Log
  /** Calls a URL; see outgoing/outgoing.ts. Rejects if there is no answer. */
  call(
    url: string,
    request: {
      method: 'POST'
      headers: Record<string, string>
      body: string
      namedBy: 'operator' | 'client'
    },
  ): Promise<{ status: number }>
}

/**
 * Notifies apps of the end of their sessions. Notices are queued in the transaction that ends the session, so none is
 * lost; one may be delivered twice if a node dies after the call, which is harmless.
 */
export function createLogoutNotices(deps: LogoutNoticeDeps): LogoutNotices {
  const { storage, clock, log, call } = deps
  const { apps, logoutNotices } = storage.store

  return {
    async deliver() {
      const silent = new Set<string>()
      for (;;) {
        const now = clock.now()
        const due = await logoutNotices.lease(now, now + LEASE, BATCH)
        await Promise.all(due.map(notice => deliverOne(notice, silent)))
        if (due.length < BATCH) return
      }
    },
  }

  /**
   * @param silent apps that just gave no answer: their other notices are postponed, so that they do not delay those of
   * other apps
   */
  async function deliverOne(notice: LogoutNotice, silent: Set<string>): Promise<void> {
    const app = await apps.find(notice.appId)
    if (!app?.backchannelLogoutUri) return logoutNotices.remove(notice.sessionId)
    const failure = silent.has(app.id) ? 'no answer to another' : await failureOf(app, notice, silent)
    if (failure === null) return logoutNotices.remove(notice.sessionId)
    const wait = RETRY_AFTER[notice.attempts]
    const fields = { app_id: app.id, attempts: notice.attempts + 1, failure }
    if (wait !== undefined) {
      log.debug(fields, 'a logout notice could not be delivered yet')
      return logoutNotices.postpone(notice.sessionId, clock.now() + wait)
    }
    log.warn(fields, 'a logout notice could not be delivered')
    return logoutNotices.remove(notice.sessionId)
  }

  async function failureOf(app: App, notice: LogoutNotice, silent: Set<string>): Promise<string | null> {
    const logout_token = await logoutToken(notice, app.idTokenAlg)
    const body = new URLSearchParams({ logout_token }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const namedBy = isSelfDescribed(app.id) ? 'client' : 'operator'
    try {
      const { status } = await call(app.backchannelLogoutUri!, { method: 'POST', headers, body, namedBy })
      return status >= 200 && status < 300 ? null : `status ${status}`
    } catch (error) {
      silent.add(app.id)
      return error instanceof Error ? error.message : String(error)
    }
  }

  /** Section 2.4. Signed like the id tokens of the app. */
  function logoutToken({ sessionId, appId, userId }: LogoutNotice, alg: SigningAlg): Promise<string> {
    const now = clock.now()
    const iat = Math.floor(now / SECOND)
    return deps.jwt.signAs(alg, 'logout+jwt', {
      type: 'logout',
      iss: deps.publicUrl,
      aud: appId,
      sub: userId,
      sid: sessionId,
      events: { [EVENT]: {} },
      iat,
      exp: iat + LOGOUT_TOKEN_SECONDS,
      jti: newId(now),
    })
  }
}
