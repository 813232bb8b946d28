import { RESERVED_SCOPE_PREFIXES, SCOPES } from '@keyway/sdk/protocol'
import type { ApiKey } from './api-key.ts'

export const MAX_SCOPES = 32
export const MAX_SCOPE_LENGTH = 64

/** Whether the key allows what `scope` names: a key without scopes allows everything its owner may. */
export function allows(key: Pick<ApiKey, 'scopes'>, scope: string): boolean {
  return key.scopes.length === 0 || key.scopes.includes(scope)
}

/** RFC 6749 section 3.3: printable ASCII without space, quote and backslash. */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** What is wrong with one scope name, or null. */
export function scopeProblem(scope: string): string | null {
  if (scope.length > MAX_SCOPE_LENGTH || !SCOPE_TOKEN.test(scope)) {
    return `must be a scope token of at most ${MAX_SCOPE_LENGTH} characters without spaces, for example "agent:connect"`
  }
  const reserved = RESERVED_SCOPE_PREFIXES.some(prefix => scope.startsWith(prefix))
  if (reserved && !Object.hasOwn(SCOPES, scope)) {
    return `is no scope that exists; these do: ${Object.keys(SCOPES).join(', ')}`
  }
  return null
}
