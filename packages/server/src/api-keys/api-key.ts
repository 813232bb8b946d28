import { randomBytes } from 'node:crypto'
import { RESERVED_SCOPE_PREFIXES, SCOPES } from '@keyway/sdk/protocol'
import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import { sha256 } from '../secrets.ts'
import type { UserStatus } from '../users/user.ts'

export const API_KEY_PREFIX = 'svc_'
export const API_KEY_RANDOM_LENGTH = 32
/** How much of a key is kept readable, so that its owner recognises it. */
export const STORED_PREFIX_LENGTH = 12
export const MAX_KEY_NAME_LENGTH = 100
export const MAX_ALLOWED_NETWORKS = 32
export const MAX_SCOPES = 32
export const MAX_SCOPE_LENGTH = 64

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

/** Whether the key allows what `scope` names: a key without scopes allows everything its owner may. */
export function allows(key: Pick<ApiKey, 'scopes'>, scope: string): boolean {
  return key.scopes.length === 0 || key.scopes.includes(scope)
}

/** RFC 6749 section 3.3: printable ASCII without space, quote and backslash. */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** What is wrong with one scope name, or null. Those that Keyway knows are listed in the SDK's `scopes.ts`. */
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

/** A new key. It leaves in the one answer that makes it. */
export function generateKey(): string {
  return API_KEY_PREFIX + randomBase62(API_KEY_RANDOM_LENGTH)
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const BASE62_REJECT_FROM = 256 - (256 % BASE62.length)

/** `length` characters of 0-9A-Za-z, each drawn uniformly: bytes that would favour some are thrown away. */
function randomBase62(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length)) {
      if (byte < BASE62_REJECT_FROM) text += BASE62[byte % BASE62.length]
    }
  }
  return text
}

export interface NewApiKey {
  /** Given by whoever may ask twice for the one key: an id makes one. Made anew where there is none. */
  id?: string
  name: string | null
  scopes: string[]
  expiresAt: Instant | null
  appId: string
  allowedNetworks: string[]
}

/** A key and what is remembered of it. Made before the transaction that stores it. */
export function newApiKey(userId: string, wanted: NewApiKey, now: Instant): { key: string; apiKey: ApiKey } {
  const key = generateKey()
  const apiKey: ApiKey = {
    id: wanted.id ?? newId(now),
    userId,
    appId: wanted.appId,
    keyHash: sha256(key),
    keyPrefix: key.slice(0, STORED_PREFIX_LENGTH),
    name: wanted.name,
    scopes: wanted.scopes,
    allowedNetworks: wanted.allowedNetworks,
    createdAt: now,
    expiresAt: wanted.expiresAt,
    revokedAt: null,
    lastUsedAt: null,
    replacedBy: null,
  }
  return { key, apiKey }
}
