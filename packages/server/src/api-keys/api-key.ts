import { randomBytes } from 'node:crypto'
import type { ErrorCode } from '@keyway/sdk/protocol'
import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import { type Limits, NO_LIMITS, newLimits, type WantedLimits } from '../limits/limit.ts'
import { type Caller, isWithin, networkMatcher } from '../network.ts'
import { sha256 } from '../secrets.ts'
import type { UserStatus } from '../users/user.ts'
import type { Metadata } from './metadata.ts'

/** Whether only keys of administrators may have this scope. */
export function isAdministrative(scope: string): boolean {
  return scope.startsWith('admin:')
}

/** Whether a key with these scopes has administrative rights if its owner is an administrator. */
export function administers(scopes: Scopes): boolean {
  return scopes === null || scopes.some(isAdministrative)
}

export const API_KEY_PREFIX = 'svc_'
export const API_KEY_RANDOM_LENGTH = 32
/** Number of a key's first characters that are stored in plain text, so that its owner recognises the key. */
export const STORED_PREFIX_LENGTH = 12
export const MAX_ALLOWED_NETWORKS = 32

export type ApiKeyStatus = 'active' | 'expired' | 'revoked'

/**
 * The scopes of a key or token; null: unrestricted, everything that its owner may do. A list is never empty, so that an
 * empty intersection is never read as unrestricted.
 */
export type Scopes = readonly [string, ...string[]] | null

/** Converts from the external form (requests, responses, tokens, rows), where an empty list means unrestricted. */
export function toScopes(listed: readonly string[]): Scopes {
  const [first, ...rest] = listed
  return first === undefined ? null : [first, ...rest]
}

/** A stored key: its SHA-256 and first characters, never the key itself. */
export interface ApiKey {
  id: string
  userId: string
  appId: string
  keyHash: string
  keyPrefix: string
  name: string | null
  scopes: Scopes
  /** An empty list allows any network. */
  allowedNetworks: string[]
  createdAt: Instant
  expiresAt: Instant | null
  revokedAt: Instant | null
  lastUsedAt: Instant | null
  /** Null if the key was never used, or was last used before origins of uses were recorded. */
  lastUsedFrom: UsedFrom | null
  replacedBy: string | null
  /** The owner's own id for whatever the key belongs to; need not be unique. */
  externalId: string | null
  /** Length of the metadata, which are stored separately (`ApiKeyStore.metadataOf`); null if there are none. */
  metadataBytes: number | null
  /**
   * The id of the first key of a chain of rotations. The use of limits is counted under it, so that a successor
   * continues the counts of its predecessor, and both share them during the overlap.
   */
  lineageId: string
  /** Set by the owner. A new key without request limits gets the default ones of the policies. */
  limits: Limits
  /** Set by the operator in addition to `limits`: of two limits of one kind the stricter applies. */
  operatorLimits: Limits
}

/** The origin of a key's use: the network as counted by limits (an IPv4 address or IPv6 /64), and the User-Agent. */
export type UsedFrom = Pick<Caller, 'network' | 'client'>

/** A key with its owner's status, on which its use depends too: every use reads both. */
export interface OwnedApiKey extends Omit<ApiKey, 'lastUsedFrom'> {
  ownerStatus: UserStatus
}

/** Revoked takes precedence over expired. A key is expired from the millisecond of its `expiresAt` on. */
export function statusOf(key: Pick<ApiKey, 'revokedAt' | 'expiresAt'>, now: Instant): ApiKeyStatus {
  if (key.revokedAt !== null) return 'revoked'
  return key.expiresAt !== null && key.expiresAt <= now ? 'expired' : 'active'
}

export function allows(scopes: Scopes, scope: string): boolean {
  return scopes === null || scopes.includes(scope)
}

export interface KeyUse {
  now: Instant
  /** The client's address; absent where no client is involved (introspection). */
  address?: string
  scope?: string
}

/** Why a genuine key may not be used: error codes in order of precedence, each with the sentence for its holder. */
export const KEY_REFUSALS = {
  api_key_revoked: () => 'This API key was revoked. Make a new one.',
  api_key_expired: () => 'This API key has expired. Make a new one.',
  account_suspended: () => 'The account of this API key is suspended. Ask the operator.',
  network_not_allowed: () => 'This API key may not be used from this network.',
  insufficient_scope: ({ scope }: KeyUse) =>
    `This API key lacks the scope ${scope}. Use a key that has it, or one without scopes.`,
} satisfies Partial<Record<ErrorCode, (use: KeyUse) => string>>
export type KeyRefusal = keyof typeof KEY_REFUSALS
export const KEY_REFUSAL_CODES = Object.keys(KEY_REFUSALS) as KeyRefusal[]

/**
 * Why this key may not be used, or null if it may. The only implementation of this rule; the hub maps it to close
 * codes, introspection to `active`. Keys of a deleted owner count as revoked. To add a refusal, add an error code
 * (`ERROR_CODES` of the SDK), its problem (problems.ts), its sentence above, and its condition here.
 */
export function refusalOf(
  key: Pick<OwnedApiKey, 'revokedAt' | 'expiresAt' | 'ownerStatus' | 'allowedNetworks' | 'scopes'>,
  { now, address, scope }: KeyUse,
): KeyRefusal | null {
  const status = key.ownerStatus === 'deleted' ? 'revoked' : statusOf(key, now)
  if (status !== 'active') return `api_key_${status}`
  if (key.ownerStatus === 'suspended') return 'account_suspended'
  if (address !== undefined && !isAllowedFrom(key.allowedNetworks, address)) return 'network_not_allowed'
  return scope === undefined || allows(key.scopes, scope) ? null : 'insufficient_scope'
}

/** Whether the networks `wanted` are a subset of `current`. An empty list means any network. */
export function isNoWider(wanted: readonly string[], current: readonly string[]): boolean {
  if (current.length === 0) return true
  return wanted.length > 0 && wanted.every(cidr => isWithin(cidr, current))
}

function isAllowedFrom(allowedNetworks: readonly string[], address: string): boolean {
  return allowedNetworks.length === 0 || networkMatcher(allowedNetworks)(address)
}

export function generateKey(): string {
  return API_KEY_PREFIX + randomBase62(API_KEY_RANDOM_LENGTH)
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const BASE62_REJECT_FROM = 256 - (256 % BASE62.length)

/** `length` characters of 0-9A-Za-z, uniformly distributed: bytes that would bias the result are rejected. */
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
  /** Set by callers that may retry, so that one id creates at most one key. Generated if absent. */
  id?: string
  name: string | null
  scopes: Scopes
  expiresAt: Instant | null
  appId: string
  allowedNetworks: string[]
  externalId?: string | null
  metadata?: Metadata | null
  limits?: WantedLimits
}

/** Creates a key and its stored form, before the transaction that stores it. */
export function newApiKey(userId: string, wanted: NewApiKey, now: Instant): { key: string; apiKey: ApiKey } {
  const key = generateKey()
  const id = wanted.id ?? newId(now)
  const apiKey: ApiKey = {
    id,
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
    lastUsedFrom: null,
    replacedBy: null,
    externalId: wanted.externalId ?? null,
    metadataBytes: null,
    lineageId: id,
    limits: newLimits(wanted.limits ?? NO_LIMITS, newId(now)),
    operatorLimits: NO_LIMITS,
  }
  return { key, apiKey }
}
