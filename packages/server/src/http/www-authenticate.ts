import type { KeywayError } from '../errors.ts'
import type { Route } from './route.ts'

/** What the credential that was refused had been; RFC 6750 section 3 asks for no detail where none was sent. */
export type Challenge = 'bearer' | 'basic' | 'none'

/** Which credential a route takes. */
export function challengeOf({ access }: Route): Challenge {
  return access === 'app' ? 'basic' : 'bearer'
}

/** Whether a refusal concerns the credential itself, and how to ask for a better one. */
export function challengeFor(error: KeywayError, status: number, challenge: Challenge): string | null {
  if (error.code === 'insufficient_scope') {
    const { scope } = error.extras
    return `Bearer error="insufficient_scope"${scope ? `, scope="${scope}"` : ''}`
  }
  if (status !== 401) return null
  if (challenge === 'basic') return 'Basic realm="Keyway apps", charset="UTF-8"'
  return error.code === 'authentication_required' ? 'Bearer' : 'Bearer error="invalid_token"'
}
