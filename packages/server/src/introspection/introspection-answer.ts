import type { Json } from '@keyway/sdk/protocol'
import type { Scopes } from '../api-keys/api-key.ts'
import type { App } from '../apps/app.ts'
import { type Instant, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'

/** RFC 7662 section 2.2. */
export type IntrospectionAnswer = { active: false } | ({ active: true } & Record<string, Json>)

export const INACTIVE: IntrospectionAnswer = { active: false }

export interface TokenCheck {
  token: string
  /** As in `introspect`. */
  consume: number
}

export type RequestingApp = Pick<App, 'id' | 'firstParty' | 'coversFrom'>

export function mayNotConsume(): KeywayError {
  return new KeywayError(
    'forbidden',
    'Calls are consumed of keys, by the app that a key is for or by a first-party app.',
  )
}

/** `scope` is absent if unrestricted, as in tokens. */
export function scopeOf(scopes: Scopes): { scope?: string; unrestricted: boolean } {
  return scopes === null ? { unrestricted: true } : { scope: scopes.join(' '), unrestricted: false }
}

export function seconds(instant: Instant): number {
  return Math.floor(instant / SECOND)
}
