import type { Instant } from '../clock.ts'

export type SessionEnd = 'logout' | 'reuse' | 'revoked' | 'suspended' | 'deleted'
/** An API session holds refresh tokens; a page session holds a cookie. Neither credential works for the other. */
export type SessionKind = 'api' | 'page'

/** One sign-in: a family of refresh tokens. */
export interface Session {
  id: string
  userId: string
  appId: string
  kind: SessionKind
  createdAt: Instant
  /** Its last refresh (or use of its cookie); the sign-in at first. */
  lastUsedAt: Instant
  /** The absolute end. The idle end is `lastUsedAt` plus the setting. */
  expiresAt: Instant
  /** The number of the refresh token that is valid now. */
  counter: number
  /** This session's own MAC key, sealed under `session-secret` with the session's id as context. */
  sealedSecret: string
  /**
   * SHA-256 (first 16 bytes, base64url) of the `Idempotency-Key`s that the last rotations carried, newest
   * first, '' where there was none, at most `REMEMBERED_RETRY_KEYS`. Entry 0 made token `counter`.
   */
  retryKeys: string[]
  endedAt: Instant | null
  endedBy: SessionEnd | null
  network: string
  client: string | null
}

/** How many rotations back an honest retry is still told apart from reuse. */
export const REMEMBERED_RETRY_KEYS = 16
