import type { Json } from '@keyway/sdk/protocol'
import type { Scopes } from '../api-keys/api-key.ts'
import type { App } from '../apps/app.ts'
import { type Instant, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'

/** The introspection response (RFC 7662 section 2.2). */
export type IntrospectionAnswer = { active: false } | ({ active: true } & Record<string, Json>)

export const INACTIVE: IntrospectionAnswer = { active: false }

export interface TokenCheck {
  token: string
  /** Number of calls to count, as in `Introspection.introspect`. */
  consume: number
}

export type RequestingApp = Pick<App, 'id' | 'firstParty' | 'coversFrom'>

export function consumptionForbidden(): KeywayError {
  return new KeywayError(
    'forbidden',
    'Calls are consumed of keys, by the app that a key is for or by a first-party app.',
  )
}

/** The members of a response that state the scopes. As in tokens, `scope` is absent for an unrestricted key. */
export function scopeMembers(scopes: Scopes): { scope?: string; unrestricted: boolean } {
  return scopes === null ? { unrestricted: true } : { scope: scopes.join(' '), unrestricted: false }
}

export function toSeconds(instant: Instant): number {
  return Math.floor(instant / SECOND)
}
