import { type ApiKey, type OwnedApiKey, toScopes } from '../api-keys/api-key.ts'
import { isUnlimited, type Limits, NO_LIMITS } from '../limits/limit.ts'
import type { UserStatus } from '../users/user.ts'
import type { ApiKeyRow } from './schema.ts'
import { toList } from './statements.ts'

/** The columns that are read when a key is used. */
type ColumnsReadOnUse = Omit<
  ApiKeyRow,
  'last_used_network' | 'last_used_client' | 'expiry_notice' | 'imported'
>
export type OwnedRow = ColumnsReadOnUse & { owner_status: UserStatus }

export function toRow(key: ApiKey): Omit<ApiKeyRow, 'expiry_notice' | 'imported'> {
  return {
    id: key.id,
    user_id: key.userId,
    app_id: key.appId,
    key_hash: key.keyHash,
    key_prefix: key.keyPrefix,
    name: key.name,
    scopes: JSON.stringify(key.scopes ?? []),
    allowed_networks: JSON.stringify(key.allowedNetworks),
    created_at: key.createdAt,
    expires_at: key.expiresAt,
    revoked_at: key.revokedAt,
    last_used_at: key.lastUsedAt,
    last_used_network: key.lastUsedFrom?.network ?? null,
    last_used_client: key.lastUsedFrom?.client ?? null,
    replaced_by: key.replacedBy,
    external_id: key.externalId,
    metadata_bytes: key.metadataBytes,
    lineage_id: key.lineageId === key.id ? null : key.lineageId,
    limits: toLimitsText(key.limits),
    operator_limits: toLimitsText(key.operatorLimits),
  }
}

export function toLimitsText(limits: Limits): string | null {
  return isUnlimited(limits) ? null : JSON.stringify(limits)
}

export function toApiKey(row: ApiKeyRow): ApiKey {
  const { last_used_network: network, last_used_client: client } = row
  return { ...fromColumnsReadOnUse(row), lastUsedFrom: network === null ? null : { network, client } }
}

function fromColumnsReadOnUse(row: ColumnsReadOnUse): Omit<ApiKey, 'lastUsedFrom'> {
  return {
    id: row.id,
    userId: row.user_id,
    appId: row.app_id,
    keyHash: row.key_hash,
    keyPrefix: row.key_prefix,
    name: row.name,
    scopes: toScopes(toList(row.scopes)),
    allowedNetworks: toList(row.allowed_networks),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
    replacedBy: row.replaced_by,
    externalId: row.external_id,
    metadataBytes: row.metadata_bytes,
    lineageId: row.lineage_id ?? row.id,
    limits: toLimits(row.limits),
    operatorLimits: toLimits(row.operator_limits),
  }
}

function toLimits(text: string | null): Limits {
  return text === null ? NO_LIMITS : (JSON.parse(text) as Limits)
}

/** Adds the owner's status in place: copying all fields would cost another microsecond in each exchange. */
export function toOwned(row: OwnedRow): OwnedApiKey {
  return Object.assign(fromColumnsReadOnUse(row), { ownerStatus: row.owner_status })
}
