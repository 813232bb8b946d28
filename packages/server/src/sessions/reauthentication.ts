import { type Instant, MINUTE } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { User } from '../users/user.ts'
import type { Session } from './session.ts'

/** Maximum age of the sign-in for acts that must not be possible with a stolen session. */
export const REAUTHENTICATION_WINDOW = 30 * MINUTE

/** When the person proved control of the mail address by signing in. A refresh or a cookie proves nothing. */
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

/**
 * Whether the sign-in is too old to create a key. An administrative key later acts without a recent sign-in, so its
 * creation requires one: otherwise a stolen session of an administrator could get one and perform every act with it.
 *
 * @param administers whether the key would have administrative scopes
 */
export function isTooOldForKey(
  administers: boolean,
  { role }: Pick<User, 'role'>,
  session: Pick<Session, 'authTime'>,
  now: Instant,
): boolean {
  return administers && role === 'admin' && !isFresh(session, now)
}
