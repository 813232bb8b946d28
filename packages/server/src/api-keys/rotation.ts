import { SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { quotasOf } from '../limits/limit.ts'
import type { Caller } from '../network.ts'
import { policyError, type Violation, violationOf } from '../policies/policy.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Store, Transaction } from '../store.ts'
import { type ApiKey, newApiKey, statusOf } from './api-key.ts'
import type { ApiKeyDeps } from './api-key-deps.ts'
import { type KeyLimits, type LimitRefusal, limitReached, refusalByLimits } from './key-limits.ts'

/** How long a rotated key still works by default, in seconds: a day. */
export const DEFAULT_OVERLAP_SECONDS = 86_400
export const MAX_OVERLAP_SECONDS = 2_592_000

type KeyStateRefusal = 'not_found' | 'api_key_inactive' | 'api_key_replaced'
type RotationRefusal = KeyStateRefusal | LimitRefusal | Violation
type Outcome = { apiKey: ApiKey } | { refused: RotationRefusal }

const DETAILS: Record<KeyStateRefusal, string> = {
  not_found: 'There is no such API key.',
  api_key_inactive: 'This API key is revoked or expired and cannot be rotated. Make a new one.',
  api_key_replaced: 'This API key has a successor already. Rotate that one.',
}

/** State that a successor does not inherit from its predecessor. */
const INITIAL_STATE = { revokedAt: null, lastUsedAt: null, lastUsedFrom: null, replacedBy: null }

/**
 * Replaces a key by a successor with the same name, scopes, app, networks, limits, expiry, external id and metadata.
 * The successor also continues the counts of the limits. The old key stays valid for the overlap, unless its own expiry
 * is earlier. key-limits.ts decides whether both may exist.
 */
export function createRotation(deps: Pick<ApiKeyDeps, 'storage' | 'clock' | 'policies' | keyof KeyLimits>) {
  const { storage, clock, policies } = deps

  return async function rotate(userId: string, id: string, overlapSeconds: number, caller: Caller) {
    // Created before the transaction, so that a retried transaction stores the same key. The transaction replaces the
    // placeholders by the fields of the old key.
    const placeholders = { name: null, scopes: null, appId: '', allowedNetworks: [], expiresAt: null }
    const { key, apiKey: prepared } = newApiKey(userId, placeholders, clock.now())

    const reason = await refusalNow(storage.store, userId, id, overlapSeconds)
    if (reason) throw refusal(reason)
    const outcome = await storage.runExclusive([`user:${userId}`], () =>
      storage.transaction<Outcome>(
        tx => replace(tx, id, prepared, overlapSeconds, caller),
        store => committedRotation(store, prepared),
      ),
    )
    if ('refused' in outcome) throw refusal(outcome.refused)
    return { key, apiKey: outcome.apiKey }
  }

  async function replace(
    tx: Transaction,
    id: string,
    prepared: ApiKey,
    overlapSeconds: number,
    caller: Caller,
  ): Promise<Outcome> {
    await tx.users.lock(prepared.userId)
    const reason = await refusalNow(tx, prepared.userId, id, overlapSeconds)
    if (reason) return { refused: reason }
    const now = clock.now()
    const oldKey = (await tx.apiKeys.findOwned(prepared.userId, id))!
    const predecessor = await tx.apiKeys.replace(id, prepared.id, now + overlapSeconds * SECOND, now, caller)
    // A revocation does not lock the owner's row and may have come first.
    if (!predecessor) return { refused: 'api_key_inactive' }

    // Inherits from the row that `tx.apiKeys.replace` locked, so that concurrent changes are included.
    const { keyHash, keyPrefix } = prepared
    const ownFields = {
      id: prepared.id,
      keyHash,
      keyPrefix,
      createdAt: now,
      expiresAt: oldKey.expiresAt,
      ...INITIAL_STATE,
    }
    const successor = { ...predecessor, ...ownFields }
    await tx.apiKeys.insert(successor, (await tx.apiKeys.metadataOf([id])).get(id) ?? null)
    await tx.quotas.reassign(
      quotasOf(predecessor).map(quota => quota.id),
      successor.id,
    )
    await tx.securityEvents.insert(
      securityEvent('api_key_rotated', oldKey.userId, now, caller, { keyId: oldKey.id }),
    )
    await tx.securityEvents.insert(
      securityEvent('api_key_created', oldKey.userId, now, caller, { keyId: successor.id }),
    )
    return { apiKey: successor }
  }

  async function refusalNow(
    from: Store,
    userId: string,
    id: string,
    overlapSeconds: number,
  ): Promise<RotationRefusal | null> {
    const now = clock.now()
    const oldKey = await from.apiKeys.findOwned(userId, id)
    if (!oldKey) return 'not_found'
    if (statusOf(oldKey, now) !== 'active') return 'api_key_inactive'
    if (oldKey.replacedBy !== null) return 'api_key_replaced'
    // The successor is a new key, to which the current policies apply.
    const violation = violationOf(oldKey, await policies.read(from), now)
    if (violation) return violation
    const purpose = overlapSeconds > 0 ? 'rotation' : 'rotation without overlap'
    return refusalByLimits(from, userId, purpose, deps, now)
  }

  function refusal(reason: RotationRefusal): KeywayError {
    if (typeof reason === 'string') return new KeywayError(reason, DETAILS[reason])
    return 'field' in reason ? policyError(reason) : limitReached(reason, deps)
  }
}

/** Reads back the outcome after a COMMIT of unknown outcome; undefined if the rotation was not committed. */
async function committedRotation(store: Store, { userId, id }: ApiKey): Promise<Outcome | undefined> {
  const apiKey = await store.apiKeys.findOwned(userId, id)
  return apiKey ? { apiKey } : undefined
}
