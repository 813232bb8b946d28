import { type Clock, MINUTE } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Jwt } from '../signing-keys/jwt.ts'
import type { Storage } from '../store.ts'
import { readAccessToken } from './access-token.ts'
import { appOf, scopesOf } from './app-session.ts'
import { parsePageCookie } from './refresh-token.ts'
import type { Authenticated, Session, SessionKind, SignedIn } from './session.ts'
import { isLive, type SessionLifetimes } from './session-lifetime.ts'

export interface SessionAuthentication {
  /**
   * The user, session and scopes of an access token, read from the database now.
   *
   * @param audience the required audience; by default this service
   * @throws KeywayError `invalid_token`
   */
  authenticate(accessToken: string, audience?: string): Promise<Authenticated>
  /** The user and session of the cookie of a page session, or null. Updates `lastUsedAt` at most once a minute. */
  authenticateCookie(cookie: string): Promise<SignedIn | null>
}

export interface AuthenticationDeps {
  storage: Storage
  clock: Clock
  jwt: Jwt
  publicUrl: string
  lifetimes: SessionLifetimes
  secretOf(session: Session): Buffer
}

/** Minimum time between two writes of a page session's `lastUsedAt`, since every request has its cookie. */
const TOUCH_INTERVAL = MINUTE

/**
 * Authenticates access tokens and page cookies. Every call reads the session, so logout, suspension and deletion take
 * effect at once, whatever the token's `exp`.
 */
export function createAuthentication(deps: AuthenticationDeps): SessionAuthentication {
  const { storage, clock, lifetimes, secretOf } = deps
  const { store } = storage

  return {
    async authenticate(accessToken, audience = deps.publicUrl) {
      const claims = await readAccessToken(deps, accessToken, audience)
      const signedIn = claims && (await store.sessions.findWithUser(claims.sessionId))
      if (!signedIn || signedIn.user.id !== claims?.userId) throw invalidToken()
      const { session } = signedIn
      if ((session.grant?.audience ?? deps.publicUrl) !== audience) throw invalidToken()
      if (isUsable(signedIn, 'api')) return { ...signedIn, scopes: null }
      // Read on every call, so that removing an app, or one of its scopes, takes effect at once.
      const app = isUsable(signedIn, 'app') ? await appOf(store.apps, session) : null
      if (!app) throw invalidToken()
      // A refreshed access token may have fewer scopes than its session.
      const scopes = scopesOf(app, session).filter(scope => claims.scopes.includes(scope))
      return { ...signedIn, scopes }
    },

    async authenticateCookie(cookie) {
      const credential = parsePageCookie(cookie)
      const signedIn = credential && (await store.sessions.findWithUser(credential.sessionId))
      if (!signedIn || !credential.provenBy(secretOf(signedIn.session))) return null
      if (!isUsable(signedIn, 'page')) return null
      const now = clock.now()
      const { id, lastUsedAt } = signedIn.session
      if (now >= lastUsedAt + TOUCH_INTERVAL) await store.sessions.touch(id, now)
      return signedIn
    },
  }

  function isUsable({ session, user }: SignedIn, kind: SessionKind): boolean {
    return session.kind === kind && user.status === 'active' && isLive(session, lifetimes, clock.now())
  }
}

function invalidToken(): KeywayError {
  return new KeywayError('invalid_token', 'The access token is not valid, or its session has ended.')
}
