import { type App, isSelfDescribed } from '../apps/app.ts'
import { type Clock, HOUR, SECOND } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import { INTERRUPTED, isInterrupted } from '../outbox/interruption.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { SigningAlg } from '../signing-keys/signing-key.ts'
import type { Storage } from '../store.ts'
import { LEASE, type LogoutNotice, MAX_AGE, RETRY_DELAYS } from './logout-notice.ts'

/** The member of the token's `events` claim that identifies a logout token (section 2.4 of Back-Channel Logout 1.0). */
const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'
/** Lifetime of a logout token in seconds: short, since the app uses it at once. */
const LOGOUT_TOKEN_SECONDS = 120
/** Number of notices that one node delivers concurrently. */
const BATCH = 20

export interface LogoutNotices {
  /**
   * Calls the apps of all due notices. Resolves when no notice is due any more, or, once `isStopping` returns true, when
   * those that were leased are handled.
   *
   * @param signal aborts the calls in progress
   */
  deliver(isStopping?: () => boolean, signal?: AbortSignal): Promise<void>
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
      signal?: AbortSignal
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
    async deliver(isStopping = () => false, signal) {
      const unresponsiveApps = new Set<string>()
      while (!isStopping()) {
        const now = clock.now()
        const dueNotices = await logoutNotices.lease(now, now + LEASE, BATCH)
        await Promise.all(dueNotices.map(notice => deliverOne(notice, unresponsiveApps, signal)))
        if (dueNotices.length < BATCH) return
      }
    },
  }

  /**
   * @param unresponsiveApps ids of apps that gave no answer to an earlier notice of this run: their other notices are
   * deferred, so that they do not delay those of other apps
   */
  async function deliverOne(
    notice: LogoutNotice,
    unresponsiveApps: Set<string>,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const app = await apps.find(notice.appId)
    if (!app?.backchannelLogoutUri) return logoutNotices.remove(notice.sessionId)
    if (unresponsiveApps.has(app.id)) return defer(notice)
    const failure = await callApp(app, notice, unresponsiveApps, signal)
    if (failure === null) return logoutNotices.remove(notice.sessionId)
    const wait = RETRY_DELAYS[notice.attempts] ?? (isInterrupted(signal) ? RETRY_DELAYS.at(-1) : undefined)
    if (wait === undefined) return drop(notice, notice.attempts + 1, failure)
    const fields = { app_id: app.id, attempts: notice.attempts + 1, failure }
    log.debug(fields, 'a logout notice could not be delivered yet')
    return logoutNotices.retry(notice.sessionId, clock.now() + wait)
  }

  /**
   * Defers a notice for an unresponsive app by as long as the notice has waited already, from five seconds to an hour:
   * so a long queue of such notices is rarely read. Drops the notice once it has waited for MAX_AGE.
   */
  async function defer(notice: LogoutNotice): Promise<void> {
    const now = clock.now()
    const age = now - notice.createdAt
    if (age >= MAX_AGE) return drop(notice, notice.attempts, 'no answer to earlier notices')
    return logoutNotices.defer(notice.sessionId, now + Math.min(HOUR, Math.max(RETRY_DELAYS[0]!, age)))
  }

  async function drop({ sessionId, appId }: LogoutNotice, attempts: number, failure: string): Promise<void> {
    log.warn({ app_id: appId, attempts, failure }, 'a logout notice could not be delivered')
    return logoutNotices.remove(sessionId)
  }

  /** Returns why the call failed, or null. */
  async function callApp(
    app: App,
    notice: LogoutNotice,
    unresponsiveApps: Set<string>,
    signal: AbortSignal | undefined,
  ): Promise<string | null> {
    const logout_token = await logoutToken(notice, app.idTokenAlg)
    const body = new URLSearchParams({ logout_token }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const urlProvider = isSelfDescribed(app.id) ? 'client' : 'operator'
    try {
      const request = { method: 'POST', headers, body, urlProvider, signal } as const
      const { status } = await call(app.backchannelLogoutUri!, request)
      return status >= 200 && status < 300 ? null : `status ${status}`
    } catch (error) {
      unresponsiveApps.add(app.id)
      if (isInterrupted(signal)) return INTERRUPTED
      return error instanceof Error ? error.message : String(error)
    }
  }

  /** Builds a logout token (Back-Channel Logout 1.0 section 2.4), signed with the algorithm of the app's id tokens. */
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
