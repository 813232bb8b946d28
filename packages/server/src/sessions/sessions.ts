import { randomBytes } from 'node:crypto'
import type { Audit } from '../audit/audit.ts'
import type { Clock, Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { KnownNetworks } from '../known-networks.ts'
import type { Caller } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { Secrets } from '../secrets.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { Storage, Transaction } from '../store.ts'
import type { User } from '../users/user.ts'
import { accessTokenOf, signAccessToken, signAccessTokenWith } from './access-token.ts'
import { appOf } from './app-session.ts'
import { createAuthentication, type SessionAuthentication } from './authentication.ts'
import { createRefresh, invalidRefreshToken } from './refresh.ts'
import { pageCookie, refreshToken, SESSION_SECRET_BYTES } from './refresh-token.ts'
import type { AppGrant, Session, SessionKind, SignedIn, SignInKind } from './session.ts'
import { createSessionEnd, type SessionEndOperations } from './session-end.ts'
import { expiryIfUnused, type SessionLifetimes } from './session-lifetime.ts'

/**
 * Maximum number of live sessions of one person; opening one more ends the oldest. People have tens at most, but an app
 * opens one with each authorization code, and a suspension ends all of them in one transaction.
 */
export const MAX_LIVE_SESSIONS = 1000
/**
 * Maximum number of old sessions that opening one session ends. It ends more than one only if the person had more than
 * `MAX_LIVE_SESSIONS` from before that limit existed.
 */
const MAX_ENDED_AT_ONCE = 100

export interface SessionTokens {
  accessToken: string
  /** The lifetime of the access token in seconds. */
  expiresIn: number
  refreshToken: string
  refreshExpiresIn: number
}

/** The credentials of each kind of session that a sign-in opens. */
export interface CredentialsOf {
  api: { tokens: SessionTokens }
  page: { cookie: string }
}

export type StartedSession<Kind extends SignInKind> = { user: User; session: Session } & CredentialsOf[Kind]

export interface Sessions extends SessionAuthentication, SessionEndOperations {
  /** Inserts the session within the caller's transaction; call `credentials` after the commit. */
  open(tx: Transaction, user: User, wanted: PreparedSession): Promise<Session>
  /** Creates the id and the secret of a session. Call it before the transaction, since that may run twice. */
  prepare(appId: string, kind: SignInKind, caller: Caller): PreparedSession
  /** Like `prepare`, for a session of an app. `authTime` is when the person proved control of the mail address. */
  prepareForApp(appId: string, grant: AppGrant, authTime: Instant, caller: Caller): PreparedSession
  credentials<Kind extends SignInKind>(kind: Kind, user: User, session: Session): StartedSession<Kind>
  /**
   * Signs the tokens of an app's session.
   * @throws KeywayError `invalid_refresh_token` if the app, or the app of the session's audience, was removed meanwhile
   */
  appTokens(user: User, session: Session): Promise<SessionTokens>
  /**
   * Rotates a refresh token.
   *
   * @param retryKey the request's Idempotency-Key
   * @throws KeywayError `invalid_refresh_token`, `refresh_token_reused`, `unavailable` (the session changed during
   *   every attempt)
   */
  refresh(refreshToken: string, retryKey: string | null, caller: Caller): Promise<StartedSession<'api'>>
  /**
   * Rotates a refresh token of an app's session by the same rules as `refresh`; call `appTokens` with the result. A
   * token of another app is refused like an unknown one, and its session continues.
   *
   * @throws KeywayError `invalid_refresh_token`, `refresh_token_reused`, `unavailable` (as `refresh`)
   */
  refreshForApp(
    refreshToken: string,
    appId: string,
    retryKey: string | null,
    caller: Caller,
  ): Promise<SignedIn>
  list(userId: string, page: PageRequest): Promise<Slice<Session>>
  /** The sessions of this person, including ended ones; unknown ids are absent. */
  findMany(userId: string, ids: readonly string[]): Promise<Map<string, Session>>
}

export interface PreparedSession {
  id: string
  appId: string
  kind: SessionKind
  caller: Caller
  secret: Buffer
  sealedSecret: string
  grant: AppGrant | null
  /** If null, the session gets the time at which it is opened. */
  authTime: Instant | null
  /** Lifetime in seconds, if it is shorter than the configured one. */
  lifetimeSeconds?: number
}

export interface SessionDeps {
  storage: Storage
  audit: Audit
  clock: Clock
  secrets: Secrets
  jwt: Jwt
  outbox: Outbox
  publicUrl: string
  lifetimes: SessionLifetimes
  knownNetworks: Pick<KnownNetworks, 'noteUse'>
}

export function createSessions(deps: SessionDeps): Sessions {
  const { storage, clock, secrets, lifetimes, knownNetworks } = deps
  const { store } = storage
  const secretOf = (session: Session) => secrets.open('session-secret', session.sealedSecret, session.id)
  const refresh = createRefresh({ ...deps, secretOf })
  const credentialsOf: { [Kind in SignInKind]: (user: User, session: Session) => CredentialsOf[Kind] } = {
    api: (user, session) => ({ tokens: tokensOf(user, session) }),
    page: (_user, session) => ({ cookie: pageCookie(session.id, secretOf(session)) }),
  }

  return {
    ...createSessionEnd({ ...deps, secretOf }),
    ...createAuthentication({ ...deps, secretOf }),

    prepare(appId, kind, caller) {
      return { ...newIdAndSecret(), appId, kind, caller, grant: null, authTime: null }
    },

    prepareForApp(appId, grant, authTime, caller) {
      return { ...newIdAndSecret(), appId, kind: 'app', caller, grant, authTime }
    },

    async open(tx, user, wanted) {
      const now = clock.now()
      const session = newSession(user, wanted, lifetimes, now)
      // The statements are sent together and run in this order, so the second counts the new session too.
      await Promise.all([
        tx.sessions.insert(session),
        tx.sessions.endSurplusOf(user.id, MAX_LIVE_SESSIONS, MAX_ENDED_AT_ONCE, { at: now, caller: null }),
      ])
      return session
    },

    credentials(kind, user, session) {
      knownNetworks.noteUse(user.id, session.network)
      return { user, session, ...credentialsOf[kind](user, session) }
    },

    async appTokens(user, session) {
      const app = await appOf(store.apps, session)
      if (!app) throw invalidRefreshToken()
      const unsignedToken = accessTokenOf(deps, user, session, lifetimes.accessTokenSeconds, clock.now())
      const { audience = null } = session.grant ?? {}
      const audienceApp = audience === null ? app : await store.apps.findByAudience(audience)
      if (!audienceApp) throw invalidRefreshToken()
      const { tokenAlg } = audienceApp
      return { ...(await signAccessTokenWith(deps, tokenAlg, unsignedToken)), ...refreshTokenOf(session) }
    },

    async refresh(token, retryKey, caller) {
      const { user, session } = await refresh(token, { kind: 'api' }, retryKey, caller)
      knownNetworks.noteUse(user.id, caller.network)
      return { user, session, tokens: tokensOf(user, session) }
    },

    refreshForApp(token, appId, retryKey, caller) {
      return refresh(token, { kind: 'app', appId }, retryKey, caller)
    },

    async findMany(userId, ids) {
      const sessions = await store.sessions.findMany(ids)
      return new Map(sessions.filter(each => each.userId === userId).map(each => [each.id, each]))
    },

    list(userId, page) {
      const now = clock.now()
      return store.sessions.listLive(userId, now, idleSince(now), page)
    },
  }

  function newIdAndSecret() {
    const id = newId(clock.now())
    const secret = randomBytes(SESSION_SECRET_BYTES)
    return { id, secret, sealedSecret: secrets.seal('session-secret', secret, id) }
  }

  function tokensOf(user: User, session: Session): SessionTokens {
    const unsignedToken = accessTokenOf(deps, user, session, lifetimes.accessTokenSeconds, clock.now())
    return { ...signAccessToken(deps, unsignedToken), ...refreshTokenOf(session) }
  }

  function refreshTokenOf(session: Session) {
    return {
      refreshToken: refreshToken(session.id, session.counter, secretOf(session)),
      // Rounded up, so that a response some milliseconds after the commit still shows the configured lifetime.
      refreshExpiresIn: Math.max(0, Math.ceil((expiryIfUnused(session, lifetimes) - clock.now()) / 1000)),
    }
  }

  function idleSince(now: Instant): Instant {
    return now - lifetimes.refreshIdleSeconds * 1000
  }
}

function newSession(user: User, wanted: PreparedSession, lifetimes: SessionLifetimes, now: Instant): Session {
  return {
    id: wanted.id,
    userId: user.id,
    appId: wanted.appId,
    kind: wanted.kind,
    createdAt: now,
    lastUsedAt: now,
    expiresAt: now + (wanted.lifetimeSeconds ?? lifetimes.sessionSeconds) * 1000,
    counter: 0,
    sealedSecret: wanted.sealedSecret,
    retryKeys: [],
    endedAt: null,
    endedBy: null,
    network: wanted.caller.network,
    client: wanted.caller.client,
    grant: wanted.grant,
    authTime: wanted.authTime ?? now,
  }
}
