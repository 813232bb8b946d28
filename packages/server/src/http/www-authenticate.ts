import type { KeywayError } from '../errors.ts'
import type { Route } from './route.ts'

/** The kind of credential that a route accepts; `none` for a request that no route handles. */
export type Challenge = 'bearer' | 'basic' | 'none'

/**
 * The `WWW-Authenticate` header for clients that failed to authenticate at an OAuth endpoint; null unless the status is
 * 401.
 */
export function clientChallenge(status: number): string | null {
  return status === 401 ? 'Basic realm="Keyway clients", charset="UTF-8"' : null
}

export function challengeOf({ access }: Route): Challenge {
  return access === 'app' ? 'basic' : 'bearer'
}

/**
 * The `WWW-Authenticate` header of a refusal; null if the credential is not the reason. If no credential was sent it
 * has no error attribute (RFC 6750 section 3).
 */
export function challengeHeader(error: KeywayError, status: number, challenge: Challenge): string | null {
  if (error.code === 'insufficient_scope') {
    const { scope } = error.extras
    return `Bearer error="insufficient_scope"${scope ? `, scope="${scope}"` : ''}`
  }
  if (status !== 401) return null
  if (challenge === 'basic') return 'Basic realm="Keyway apps", charset="UTF-8"'
  return error.code === 'authentication_required' ? 'Bearer' : 'Bearer error="invalid_token"'
}
