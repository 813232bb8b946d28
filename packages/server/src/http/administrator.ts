import type { Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { assertFresh } from '../sessions/reauthentication.ts'
import type { Session } from '../sessions/session.ts'
import type { User } from '../users/user.ts'

export type AdministrativeAccess = 'admin:read' | 'admin:write' | 'admin:session'

export function isAdministrative(access: string): access is AdministrativeAccess {
  return access.startsWith('admin:')
}

/**
 * Refuses a signed-in person who may not make this administrative call: `support` may read; administrators may also
 * write, within 30 minutes of their sign-in. The role is the one that the user has now.
 *
 * @throws KeywayError `forbidden`, `reauthentication_required`
 */
export function assertMayAdminister(
  access: AdministrativeAccess,
  { role }: User,
  session: Session,
  now: Instant,
): void {
  const isAllowed = role === 'admin' || (role === 'support' && access === 'admin:read')
  if (!isAllowed)
    throw notAllowed(role === 'support' ? 'Support may read this and not change it.' : undefined)
  if (access !== 'admin:read') assertFresh(session, now)
}

export function assertKeyMayAdminister(owner: User | null): void {
  if (owner?.role !== 'admin') throw notAllowed()
}

function notAllowed(detail = 'Only administrators of this service may do this.'): KeywayError {
  return new KeywayError('forbidden', detail)
}
