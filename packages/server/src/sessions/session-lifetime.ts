import type { Instant } from '../clock.ts'
import type { Session } from './session.ts'

export interface SessionLifetimes {
  accessTokenSeconds: number
  refreshIdleSeconds: number
  sessionSeconds: number
  refreshGraceSeconds: number
}

/** Whether it stands at `now`. Ended outranks expired. */
export function isLive(session: Session, lifetimes: SessionLifetimes, now: Instant): boolean {
  return session.endedAt === null && now < idleEnd(session, lifetimes)
}

/** When the session ends unless it is refreshed, whichever limit comes first. */
export function idleEnd(session: Session, lifetimes: SessionLifetimes): Instant {
  return Math.min(session.expiresAt, session.lastUsedAt + lifetimes.refreshIdleSeconds * 1000)
}
