import { SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { quotasOf } from '../limits/limit.ts'
import type { Caller } from '../network.ts'
import { refusedByPolicy, type Violation, violationOf } from '../policies/policy.ts'
import { securityEvent } from '../security-events/security-event.ts'
import type { Store, Transaction } from '../store.ts'
import { type ApiKey, newApiKey, statusOf } from './api-key.ts'
import type { ApiKeyDeps } from './api-key-deps.ts'
import { type KeyLimits, type LimitRefusal, limitReached, refusalByLimits } from './key-limits.ts'

/** How long a rotated key still works by default, in seconds: a day. */
export const DEFAULT_OVERLAP_SECONDS = 86_400
export const MAX_OVERLAP_SECONDS = 2_592_000

type Reason = 'not_found' | 'api_key_inactive' | 'api_key_replaced'
type Refused = Reason | LimitRefusal | Violation
type Outcome = { apiKey: ApiKey } | { refused: Refused }

const DETAILS: Record<Reason, string> = {
  not_found: 'There is no such API key.',
  api_key_inactive: 'This API key is revoked or expired and cannot be rotated. Make a new one.',
  api_key_replaced: 'This API key has a successor already. Rotate that one.',
}

/** The fields that a successor does not inherit, besides its id and its secret. */
const UNUSED = { revokedAt: null, lastUsedAt: null, lastUsedFrom: null, replacedBy: null }

/**
 * Replaces a key by one with the same name, scopes, app, networks, limits, expiry, external id and metadata, and with
 * what was used up of the limits. The old key stays valid for the overlap. key-limits.ts decides when both may exist.
 */
export function createRotation(deps: Pick<ApiKeyDeps, 'storage' | 'clock' | 'policies' | keyof KeyLimits>) {
  const { storage, clock, policies } = deps

  return async function rotate(userId: string, id: string, overlapSeconds: number, caller: Caller) {
    // Created before the transaction, so that a retried one creates the same key; inherited fields are filled in
    // there.
    const blank = { name: null, scopes: null, appId: '', allowedNetworks: [], expiresAt: null }
    const { key, apiKey: fresh } = newApiKey(userId, blank, clock.now())

    const refused = await refusalNow(storage.store, userId, id, overlapSeconds)
    if (refused) throw refusal(refused)
    const outcome = await storage.runExclusive([`user:${userId}`], () =>
      storage.transaction<Outcome>(
        tx => replace(tx, id, fresh, overlapSeconds, caller),
        store => committed(store, fresh),
      ),
    )
    if ('refused' in outcome) throw refusal(outcome.refused)
    return { key, apiKey: outcome.apiKey }
  }

  async function replace(
    tx: Transaction,
    id: string,
    fresh: ApiKey,
    overlapSeconds: number,
    caller: Caller,
  ): Promise<Outcome> {
    await tx.users.lock(fresh.userId)
    const refused = await refusalNow(tx, fresh.userId, id, overlapSeconds)
    if (refused) return { refused }
    const now = clock.now()
    const old = (await tx.apiKeys.findOwned(fresh.userId, id))!
    const replaced = await tx.apiKeys.replace(id, fresh.id, now + overlapSeconds * SECOND, now, caller)
    // A revocation does not lock the owner's row and may have come first.
    if (!replaced) return { refused: 'api_key_inactive' }

    // Taken from the row that `replace` locked, so that concurrent changes are included.
    const { keyHash, keyPrefix } = fresh
    const own = { id: fresh.id, keyHash, keyPrefix, createdAt: now, expiresAt: old.expiresAt, ...UNUSED }
    const successor = { ...replaced, ...own }
    await tx.apiKeys.insert(successor, (await tx.apiKeys.metadataOf([id])).get(id) ?? null)
    await tx.quotas.handOn(
      quotasOf(replaced).map(quota => quota.id),
      successor.id,
    )
    await tx.securityEvents.insert(
      securityEvent('api_key_rotated', old.userId, now, caller, { keyId: old.id }),
    )
    await tx.securityEvents.insert(
      securityEvent('api_key_created', old.userId, now, caller, { keyId: successor.id }),
    )
    return { apiKey: successor }
  }

  async function refusalNow(
    from: Store,
    userId: string,
    id: string,
    overlapSeconds: number,
  ): Promise<Refused | null> {
    const now = clock.now()
    const old = await from.apiKeys.findOwned(userId, id)
    if (!old) return 'not_found'
    if (statusOf(old, now) !== 'active') return 'api_key_inactive'
    if (old.replacedBy !== null) return 'api_key_replaced'
    // The successor is a new key, which the policies bind.
    const violation = violationOf(old, await policies.read(from), now)
    if (violation) return violation
    const purpose = overlapSeconds > 0 ? 'rotation' : 'rotation without overlap'
    return refusalByLimits(from, userId, purpose, deps, now)
  }

  function refusal(reason: Refused): KeywayError {
    if (typeof reason === 'string') return new KeywayError(reason, DETAILS[reason])
    return 'field' in reason ? refusedByPolicy(reason) : limitReached(reason, deps)
  }
}

async function committed(store: Store, { userId, id }: ApiKey): Promise<Outcome | undefined> {
  const apiKey = await store.apiKeys.findOwned(userId, id)
  return apiKey ? { apiKey } : undefined
}
