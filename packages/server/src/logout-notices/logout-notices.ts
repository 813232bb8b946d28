import { type App, isSelfDescribed } from '../apps/app.ts'
import { type Clock, SECOND } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { SigningAlg } from '../signing-keys/signing-key.ts'
import type { Storage } from '../store.ts'
import { LEASE, type LogoutNotice, RETRY_DELAYS } from './logout-notice.ts'

/** The member of the token's `events` claim that identifies a logout token (section 2.4 of Back-Channel Logout 1.0). */
const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'
/** Lifetime of a logout token in seconds: short, since the app uses it at once. */
const LOGOUT_TOKEN_SECONDS = 120
/** Number of notices that one node delivers concurrently. */
const BATCH = 20

export interface LogoutNotices {
  /** Calls the apps of all due notices. Resolves when no notice is due any more. */
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
      urlProvider: 'operator' | 'client'
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
      const unresponsiveApps = new Set<string>()
      for (;;) {
        const now = clock.now()
        const dueNotices = await logoutNotices.lease(now, now + LEASE, BATCH)
        await Promise.all(dueNotices.map(notice => deliverOne(notice, unresponsiveApps)))
        if (dueNotices.length < BATCH) return
      }
    },
  }

  /**
   * @param unresponsiveApps ids of apps that gave no answer to an earlier notice of this run: their other notices are
   * postponed without a call, so that they do not delay those of other apps
   */
  async function deliverOne(notice: LogoutNotice, unresponsiveApps: Set<string>): Promise<void> {
    const app = await apps.find(notice.appId)
    if (!app?.backchannelLogoutUri) return logoutNotices.remove(notice.sessionId)
    const failure = unresponsiveApps.has(app.id)
      ? 'no answer to an earlier notice'
      : await callApp(app, notice, unresponsiveApps)
    if (failure === null) return logoutNotices.remove(notice.sessionId)
    const wait = RETRY_DELAYS[notice.attempts]
    const fields = { app_id: app.id, attempts: notice.attempts + 1, failure }
    if (wait !== undefined) {
      log.debug(fields, 'a logout notice could not be delivered yet')
      return logoutNotices.postpone(notice.sessionId, clock.now() + wait)
    }
    log.warn(fields, 'a logout notice could not be delivered')
    return logoutNotices.remove(notice.sessionId)
  }

  /** Returns why the call failed, or null. */
  async function callApp(
    app: App,
    notice: LogoutNotice,
    unresponsiveApps: Set<string>,
  ): Promise<string | null> {
    const logout_token = await logoutToken(notice, app.idTokenAlg)
    const body = new URLSearchParams({ logout_token }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const urlProvider = isSelfDescribed(app.id) ? 'client' : 'operator'
    try {
      const { status } = await call(app.backchannelLogoutUri!, { method: 'POST', headers, body, urlProvider })
      return status >= 200 && status < 300 ? null : `status ${status}`
    } catch (error) {
      unresponsiveApps.add(app.id)
      return error instanceof Error ? error.message : String(error)
    }
  }

  /** Builds a logout token (section 2.4), signed with the algorithm of the app's id tokens. */
  function logoutToken({ sessionId, appId, userId }: LogoutNotice, alg: SigningAlg): Promise<string> {
    const now = clock.now()
    const iat = Math.floor(now / SECOND)
    return deps.jwt.signAs(alg, 'logout+jwt', {
      type: 'logout',
      iss: deps.publicUrl,
      aud: appId,
      sub: userId,
      sid: sessionId,
      events: { [LOGOUT_EVENT]: {} },
      iat,
      exp: iat + LOGOUT_TOKEN_SECONDS,
      jti: newId(now),
    })
  }
}
