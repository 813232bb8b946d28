import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import { sha256 } from '../secrets.ts'
import { type ApiKey, generateKey, STORED_PREFIX_LENGTH } from './api-key.ts'

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
