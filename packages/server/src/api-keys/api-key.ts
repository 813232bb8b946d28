import { randomBytes } from 'node:crypto'
import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import { sha256 } from '../secrets.ts'
import type { UserStatus } from '../users/user.ts'

export const API_KEY_PREFIX = 'svc_'
export const API_KEY_RANDOM_LENGTH = 32
/** How much of a key is kept readable, so that its owner recognises it. */
export const STORED_PREFIX_LENGTH = 12
export const MAX_ALLOWED_NETWORKS = 32

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
