import { RESERVED_SCOPE_PREFIXES, SCOPES } from '@keyway/sdk/protocol'
import type { Instant } from '../clock.ts'
import { randomBase62 } from '../secrets.ts'
import type { UserStatus } from '../users/user.ts'

export const API_KEY_PREFIX = 'svc_'
export const API_KEY_RANDOM_LENGTH = 32
/** How much of a key is kept readable, so that its owner recognises it. */
export const STORED_PREFIX_LENGTH = 12
export const MAX_KEY_NAME_LENGTH = 100
export const MAX_SCOPES = 32
export const MAX_SCOPE_LENGTH = 64
export const MAX_ALLOWED_NETWORKS = 32
/** Seconds that a rotated key still works unless the caller says otherwise: a day. */
export const DEFAULT_OVERLAP_SECONDS = 86_400
export const MAX_OVERLAP_SECONDS = 2_592_000

export type ApiKeyStatus = 'active' | 'expired' | 'revoked'

/** A key as it is remembered: its SHA-256 and first characters, never the key. */
export interface ApiKey {
  id: string
  userId: string
  appId: string
  keyHash: string
  keyPrefix: string
  name: string | null
  /** Empty: everything its owner may do. */
  scopes: string[]
  /** Empty: from anywhere. */
  allowedNetworks: string[]
  createdAt: Instant
  expiresAt: Instant | null
  revokedAt: Instant | null
  lastUsedAt: Instant | null
  replacedBy: string | null
}

/** A key and what must be known of its owner to answer for it. */
export interface OwnedApiKey extends ApiKey {
  ownerStatus: UserStatus
}

/** Revoked outranks expired. A key has expired from the very millisecond of its `expiresAt`. */
export function statusOf(key: Pick<ApiKey, 'revokedAt' | 'expiresAt'>, now: Instant): ApiKeyStatus {
  if (key.revokedAt !== null) return 'revoked'
  return key.expiresAt !== null && key.expiresAt <= now ? 'expired' : 'active'
}

/** A new key. It leaves in the one answer that makes it. */
export function generateKey(): string {
  return API_KEY_PREFIX + randomBase62(API_KEY_RANDOM_LENGTH)
}

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
