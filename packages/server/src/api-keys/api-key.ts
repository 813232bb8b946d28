import { randomBytes } from 'node:crypto'
import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import { isWithin, networkMatcher } from '../network.ts'
import { sha256 } from '../secrets.ts'
import type { UserStatus } from '../users/user.ts'

export const API_KEY_PREFIX = 'svc_'
export const API_KEY_RANDOM_LENGTH = 32
/** How much of a key is kept readable, so that its owner recognises it. */
export const STORED_PREFIX_LENGTH = 12
export const MAX_ALLOWED_NETWORKS = 32

export type ApiKeyStatus = 'active' | 'expired' | 'revoked'

/**
 * What a key or token may do: null is everything that its owner may. A list is never empty, so that a narrowing
 * which leaves nothing can never be read as "everything".
 */
export type Scopes = readonly [string, ...string[]] | null

/** What stands outside (requests, answers, tokens, rows) as a list: there an empty one means everything. */
export function toScopes(listed: readonly string[]): Scopes {
  const [first, ...rest] = listed
  return first === undefined ? null : [first, ...rest]
}

/** A key as it is remembered: its SHA-256 and first characters, never the key. */
export interface ApiKey {
  id: string
  userId: string
  appId: string
  keyHash: string
  keyPrefix: string
  name: string | null
  scopes: Scopes
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

/** Whether `scopes` cover what `scope` names. */
export function allows(scopes: Scopes, scope: string): boolean {
  return scopes === null || scopes.includes(scope)
}

/** Why a genuine key may not be used, the strongest reason first. */
export type KeyRefusal = 'revoked' | 'expired' | 'suspended' | 'network' | 'scope'

/** What a key is to be used for. */
export interface KeyUse {
  now: Instant
  /** Of the client; left out where the question is not asked for one (introspection). */
  address?: string
  /** What the use needs; left out where it needs nothing in particular. */
  scope?: string
}

/**
 * May this key be used? Null: yes. The one rule, from which HTTP takes its error codes, the hub its close codes and
 * introspection its answer. A deleted owner's keys are as good as revoked.
 */
export function refusalOf(
  key: Pick<OwnedApiKey, 'revokedAt' | 'expiresAt' | 'ownerStatus' | 'allowedNetworks' | 'scopes'>,
  { now, address, scope }: KeyUse,
): KeyRefusal | null {
  const status = key.ownerStatus === 'deleted' ? 'revoked' : statusOf(key, now)
  if (status !== 'active') return status
  if (key.ownerStatus === 'suspended') return 'suspended'
  if (address !== undefined && !isFrom(key.allowedNetworks, address)) return 'network'
  return scope === undefined || allows(key.scopes, scope) ? null : 'scope'
}

/** Whether a key that is allowed `wanted` may be used from nowhere that `current` does not allow. */
export function isNoWider(wanted: readonly string[], current: readonly string[]): boolean {
  if (current.length === 0) return true
  return wanted.length > 0 && wanted.every(cidr => isWithin(cidr, current))
}

function isFrom(allowedNetworks: readonly string[], address: string): boolean {
  return allowedNetworks.length === 0 || networkMatcher(allowedNetworks)(address)
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
  scopes: Scopes
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
