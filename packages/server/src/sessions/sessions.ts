import { randomBytes } from 'node:crypto'
import type { Clock, Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { Secrets } from '../secrets.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { Storage, Transaction } from '../store.ts'
import type { User } from '../users/user.ts'
import { signAccessToken } from './access-token.ts'
import { createAuthentication } from './authentication.ts'
import { createRefresh } from './refresh.ts'
import { pageCookie, refreshToken, SESSION_SECRET_BYTES } from './refresh-token.ts'
import type { Session, SessionEnd, SessionKind } from './session.ts'
import { createSessionEnd } from './session-end.ts'
import { idleEnd, type SessionLifetimes } from './session-lifetime.ts'

export interface SessionTokens {
  accessToken: string
  /** Seconds. */
  expiresIn: number
  refreshToken: string
  refreshExpiresIn: number
}

/** The credentials of an opened session, for the client. */
export interface CredentialsOf {
  api: { tokens: SessionTokens }
  page: { cookie: string }
}

export type StartedSession<Kind extends SessionKind> = { user: User; session: Session } & CredentialsOf[Kind]

export interface SignedIn {
  user: User
  session: Session
}

export interface Sessions {
  /** Inserts the session within the caller's transaction; call `credentials` after the commit. */
  open(tx: Transaction, user: User, wanted: PreparedSession): Promise<Session>
  /** Creates id and secret before the transaction, which may run twice. */
  prepare(appId: string, kind: SessionKind, caller: Caller): PreparedSession
  credentials<Kind extends SessionKind>(kind: Kind, user: User, session: Session): StartedSession<Kind>
  /**
   * Rotates a refresh token.
   *
   * @param retryKey the request's Idempotency-Key
   * @throws KeywayError `invalid_refresh_token`, `refresh_token_reused`
   */
  refresh(refreshToken: string, retryKey: string | null, caller: Caller): Promise<StartedSession<'api'>>
  /** The user and session of an access token, read from the database now. @throws KeywayError `invalid_token` */
  authenticate(accessToken: string): Promise<SignedIn>
  /** The user and session of a page cookie, or null. Updates `lastUsedAt` at most once a minute. */
  authenticateCookie(cookie: string): Promise<SignedIn | null>
  /** Ends the session of this refresh token, rotated or not. False when there is none. */
  endByToken(refreshToken: string, by: SessionEnd, caller: Caller): Promise<boolean>
  list(userId: string, page: PageRequest): Promise<Slice<Session>>
  /** @throws KeywayError `not_found` */
  end(userId: string, sessionId: string, caller: Caller): Promise<void>
  endOthers(userId: string, exceptSessionId: string | null, caller: Caller): Promise<void>
}

export interface PreparedSession {
  id: string
  appId: string
  kind: SessionKind
  caller: Caller
  secret: Buffer
  sealedSecret: string
}

export interface SessionDeps {
  storage: Storage
  clock: Clock
  secrets: Secrets
  jwt: Jwt
  outbox: Outbox
  publicUrl: string
  lifetimes: SessionLifetimes
}

export function createSessions(deps: SessionDeps): Sessions {
  const { storage, clock, secrets, lifetimes } = deps
  const { store } = storage
  const secretOf = (session: Session) => secrets.open('session-secret', session.sealedSecret, session.id)
  const refresh = createRefresh({ ...deps, secretOf })
  const credentialsOf: { [Kind in SessionKind]: (user: User, session: Session) => CredentialsOf[Kind] } = {
    api: (user, session) => ({ tokens: tokensOf(user, session) }),
    page: (_user, session) => ({ cookie: pageCookie(session.id, secretOf(session)) }),
  }

  return {
    ...createSessionEnd({ ...deps, secretOf }),
    ...createAuthentication({ ...deps, secretOf }),

    prepare(appId, kind, caller) {
      const id = newId(clock.now())
      const secret = randomBytes(SESSION_SECRET_BYTES)
      return { id, appId, kind, caller, secret, sealedSecret: secrets.seal('session-secret', secret, id) }
    },

    async open(tx, user, wanted) {
      const session = newSession(user, wanted, lifetimes, clock.now())
      await tx.sessions.insert(session)
      return session
    },

    credentials(kind, user, session) {
      return { user, session, ...credentialsOf[kind](user, session) }
    },

    async refresh(token, retryKey, caller) {
      const { user, session } = await refresh(token, retryKey, caller)
      return { user, session, tokens: tokensOf(user, session) }
    },

    list(userId, page) {
      const now = clock.now()
      return store.sessions.listLive(userId, now, idleSince(now), page)
    },
  }

  function tokensOf(user: User, session: Session): SessionTokens {
    const now = clock.now()
    return {
      ...signAccessToken(deps, user, session, lifetimes.accessTokenSeconds, now),
      refreshToken: refreshToken(session.id, session.counter, secretOf(session)),
      // Rounded up, so that a response some milliseconds after the commit still shows the configured lifetime.
      refreshExpiresIn: Math.max(0, Math.ceil((idleEnd(session, lifetimes) - now) / 1000)),
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
    expiresAt: now + lifetimes.sessionSeconds * 1000,
    counter: 0,
    sealedSecret: wanted.sealedSecret,
    retryKeys: [],
    endedAt: null,
    endedBy: null,
    network: wanted.caller.network,
    client: wanted.caller.client,
  }
}
