import { type Instant, MINUTE } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Session } from './session.ts'

/** How old the sign-in of a session may be for acts that a stolen session must not suffice for. */
export const REAUTHENTICATION_WINDOW = 30 * MINUTE

/** When the person proved the address: at sign-in; a refresh and the use of a cookie prove nothing. */
export function signedInAt(session: Pick<Session, 'authTime'>): Instant {
  return session.authTime
}

export function isFresh(session: Pick<Session, 'authTime'>, now: Instant): boolean {
  return now < signedInAt(session) + REAUTHENTICATION_WINDOW
}

/** @throws KeywayError `reauthentication_required` */
export function assertFresh(session: Pick<Session, 'authTime'>, now: Instant): void {
  if (isFresh(session, now)) return
  throw new KeywayError(
    'reauthentication_required',
    'This needs a sign-in of the last 30 minutes. Sign in again by a new link or code.',
  )
}
