import type { Instant } from '../clock.ts'
import type { Caller } from '../network.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { ApiKey, ApiKeyStatus, OwnedApiKey } from './api-key.ts'

export interface NewApiKey {
  name: string | null
  scopes: string[]
  expiresAt: Instant | null
  appId: string
  allowedNetworks: string[]
}

/** Whether a key still opens anything, and what; the hub asks this about every key that it holds connections of. */
export interface KeyStanding {
  keyId: string
  userId: string
  name: string | null
  scopes: string[]
  allowedNetworks: string[]
  expiresAt: Instant | null
  standing: 'active' | 'expired' | 'revoked' | 'suspended'
}

export interface ApiKeys {
  /** @throws KeywayError `key_limit_reached`, `invalid_request` (unregistered app) */
  create(userId: string, wanted: NewApiKey, caller: Caller): Promise<{ key: string; apiKey: ApiKey }>
  list(userId: string, status: ApiKeyStatus | null, page: PageRequest): Promise<Slice<ApiKey>>
  /** @throws KeywayError `not_found`, for another user's key as for an unknown one */
  get(userId: string, id: string): Promise<ApiKey>
  /** @throws KeywayError `not_found` */
  update(
    userId: string,
    id: string,
    change: { name?: string | null; allowedNetworks?: string[] },
  ): Promise<ApiKey>
  /** @throws KeywayError `not_found`, `api_key_inactive`, `api_key_replaced` */
  rotate(
    userId: string,
    id: string,
    overlapSeconds: number,
    caller: Caller,
  ): Promise<{ key: string; apiKey: ApiKey }>
  /** Permanent; repeating it changes nothing. @throws KeywayError `not_found` */
  revoke(userId: string, id: string, caller: Caller | null): Promise<ApiKey>
  /** By the operator, whoever owns it. @throws KeywayError `not_found` */
  revokeById(id: string): Promise<ApiKey>
  /** Ends the key that the caller holds, and mails its owner. False when there is no such key. */
  revokeByPossession(key: string, caller: Caller): Promise<boolean>
  /**
   * The key that was presented, if it opens anything now from this address; notes its use.
   *
   * @throws KeywayError `invalid_api_key` (malformed and unknown alike), `api_key_revoked`, `api_key_expired`,
   *   `account_suspended`, `network_not_allowed`
   */
  authenticate(key: string, caller: Pick<Caller, 'address'>): Promise<OwnedApiKey>
  /** Unknown keys are absent. */
  standing(ids: readonly string[]): Promise<Map<string, KeyStanding>>
  /** Writes gathered `last_used_at`; called on a timer and before the process ends. */
  flushUses(): Promise<void>
}
