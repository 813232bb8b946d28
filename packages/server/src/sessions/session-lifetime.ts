import type { Instant } from '../clock.ts'
import type { Session } from './session.ts'

export interface SessionLifetimes {
  accessTokenSeconds: number
  refreshIdleSeconds: number
  sessionSeconds: number
  refreshGraceSeconds: number
}

export function isLive(session: Session, lifetimes: SessionLifetimes, now: Instant): boolean {
  return session.endedAt === null && now < expiryIfUnused(session, lifetimes)
}

/** When the session expires unless it is used again: at its idle or its absolute limit, whichever is earlier. */
export function expiryIfUnused(session: Session, lifetimes: SessionLifetimes): Instant {
  return Math.min(session.expiresAt, session.lastUsedAt + lifetimes.refreshIdleSeconds * 1000)
}
