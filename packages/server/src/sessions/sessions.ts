import type { Caller } from '../network.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { Transaction } from '../store.ts'
import type { User } from '../users/user.ts'
import type { Session, SessionEnd, SessionKind } from './session.ts'

export interface SessionTokens {
  accessToken: string
  /** Seconds. */
  expiresIn: number
  refreshToken: string
  refreshExpiresIn: number
}

/** A session and the credential that goes to its holder: tokens for an API session, a cookie for a page's. */
export interface StartedSession {
  user: User
  session: Session
  /** Null for a page session. */
  tokens: SessionTokens | null
  /** Null for an API session. */
  cookie: string | null
}

export interface SignedIn {
  user: User
  session: Session
}

export interface Sessions {
  /** Makes the session's row inside the caller's transaction; sign its tokens with `credentials` after the commit. */
  open(tx: Transaction, user: User, wanted: PreparedSession): Promise<Session>
  /** Id and secret, made before the transaction. */
  prepare(appId: string, kind: SessionKind, caller: Caller): PreparedSession
  credentials(user: User, session: Session): StartedSession
  /**
   * Rotates a refresh token.
   *
   * @param retryKey the request's Idempotency-Key
   * @throws KeywayError `invalid_refresh_token`, `refresh_token_reused`
   */
  refresh(
    refreshToken: string,
    retryKey: string | null,
    caller: Caller,
  ): Promise<StartedSession & { tokens: SessionTokens }>
  /** Who an access token speaks for, its session read now. @throws KeywayError `invalid_token` */
  authenticate(accessToken: string): Promise<SignedIn>
  /** Who a page's cookie speaks for, or null. Moves `lastUsedAt` at most once a minute. */
  authenticateCookie(cookie: string): Promise<SignedIn | null>
  /** Ends the session of this refresh token, rotated or not. False when there is none. */
  endByToken(refreshToken: string, by: SessionEnd, caller: Caller): Promise<boolean>
  list(userId: string, page: PageRequest): Promise<Slice<Session>>
  /** @throws KeywayError `not_found` */
  end(userId: string, sessionId: string, caller: Caller): Promise<void>
  endOthers(userId: string, exceptSessionId: string, caller: Caller): Promise<void>
}

export interface PreparedSession {
  id: string
  appId: string
  kind: SessionKind
  caller: Caller
  secret: Buffer
  sealedSecret: string
}
