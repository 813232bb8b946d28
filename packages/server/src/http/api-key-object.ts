import type { ApiKeyObject, Page } from '@keyway/sdk/protocol'
import { type ApiKey, statusOf } from '../api-keys/api-key.ts'
import type { ApiKeys } from '../api-keys/api-keys.ts'
import type { Metadata } from '../api-keys/metadata.ts'
import { type Clock, type Instant, toRfc3339, toRfc3339OrNull } from '../clock.ts'
import { page, type Slice } from '../paging.ts'
import { limitsObject } from './limits-object.ts'

/** Creates the JSON forms of keys, which include fields that are stored in other rows. */
export function createKeyObjects(apiKeys: Pick<ApiKeys, 'metadataOf' | 'quotasLeft'>, clock: Clock) {
  return { objectOf, pageOf }

  async function objectOf(key: ApiKey): Promise<ApiKeyObject> {
    return apiKeyObject(key, await readDetails([key]), clock.now())
  }

  async function pageOf(slice: Slice<ApiKey>): Promise<Page<ApiKeyObject>> {
    const details = await readDetails(slice.rows)
    const now = clock.now()
    return page(slice, key => apiKeyObject(key, details, now))
  }

  async function readDetails(keys: readonly ApiKey[]): Promise<DetailsOfKeys> {
    const [metadata, remainingQuotas] = await Promise.all([
      apiKeys.metadataOf(keys),
      apiKeys.quotasLeft(keys),
    ])
    return { metadata, remainingQuotas }
  }
}

interface DetailsOfKeys {
  /** By key id. */
  metadata: ReadonlyMap<string, Metadata>
  /** In calls, by quota id. */
  remainingQuotas: ReadonlyMap<string, number>
}

/** Lists the fields explicitly, as for every response, so that no internal field is ever returned. */
function apiKeyObject(key: ApiKey, { metadata, remainingQuotas }: DetailsOfKeys, now: Instant): ApiKeyObject {
  return {
    id: key.id,
    user_id: key.userId,
    key_prefix: key.keyPrefix,
    name: key.name,
    app_id: key.appId,
    scopes: [...(key.scopes ?? [])],
    unrestricted: key.scopes === null,
    allowed_networks: key.allowedNetworks,
    status: statusOf(key, now),
    created_at: toRfc3339(key.createdAt),
    last_used_at: toRfc3339OrNull(key.lastUsedAt),
    last_used_from: key.lastUsedFrom && {
      network: key.lastUsedFrom.network,
      client: key.lastUsedFrom.client,
    },
    expires_at: toRfc3339OrNull(key.expiresAt),
    revoked_at: toRfc3339OrNull(key.revokedAt),
    replaced_by: key.replacedBy,
    external_id: key.externalId,
    metadata: metadata.get(key.id) ?? null,
    limits: limitsObject(key.limits, remainingQuotas),
    operator_limits: limitsObject(key.operatorLimits, remainingQuotas),
  }
}
