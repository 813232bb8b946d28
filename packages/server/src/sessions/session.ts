import type { Instant } from '../clock.ts'
import type { User } from '../users/user.ts'

/** Why a session ended before it expired. */
export type SessionEndCause = 'logout' | 'reuse' | 'revoked' | 'suspended' | 'deleted'
/**
 * The credentials of a session depend on its kind: refresh tokens (`api`), a cookie (`page`), or refresh tokens that
 * only one app may use and access tokens with scopes (`app`). No credential of one kind works for another.
 */
export type SessionKind = 'api' | 'page' | 'app'
/** The kinds that a person's sign-in opens. */
export type SignInKind = Exclude<SessionKind, 'app'>

/** What a person granted to the app of a session. */
export interface AppGrant {
  /** An empty list grants nothing. */
  scopes: string[]
  /** The audience of the session's access tokens, which is registered for an app; null for this service. */
  audience: string | null
  /** The page session in which the person gave the grant; absent if there was none. */
  signInId?: string
}

/** One sign-in of a person, or one grant to an app: a family of refresh tokens or, for kind `page`, a cookie. */
export interface Session {
  id: string
  userId: string
  appId: string
  kind: SessionKind
  createdAt: Instant
  /** Time of the last refresh, or of the last use of its cookie (to the minute); initially `createdAt`. */
  lastUsedAt: Instant
  /** The absolute limit. The idle limit is `lastUsedAt` plus `KEYWAY_REFRESH_IDLE_SECONDS`. */
  expiresAt: Instant
  /** Counter of the refresh token that is valid now. */
  counter: number
  /** This session's own MAC key, sealed under `session-secret` with the session's id as context. */
  sealedSecret: string
  /**
   * SHA-256 (first 16 bytes, base64url) of the `Idempotency-Key` of each of the last rotations, newest first; '' for a
   * rotation without that header. Entry 0 belongs to the rotation that issued the token with number `counter`. There
   * are at most `REMEMBERED_RETRY_KEYS`.
   */
  retryKeys: string[]
  endedAt: Instant | null
  endedBy: SessionEndCause | null
  network: string
  client: string | null
  /** The grant of a session of kind `app`; null for other kinds, which may do everything that their user may. */
  grant: AppGrant | null
  /**
   * When the person proved control of the mail address, for the claim `auth_time`: `createdAt` for a session
   * that a sign-in opened.
   */
  authTime: Instant
}

/** Number of past rotations for which a retry can be distinguished from reuse. */
export const REMEMBERED_RETRY_KEYS = 16

export interface SignedIn {
  user: User
  session: Session
}

/** What an access token authenticates. */
export interface Authenticated extends SignedIn {
  /** The scopes that limit the token, possibly none; null if it may do everything that its user may. */
  scopes: readonly string[] | null
}
