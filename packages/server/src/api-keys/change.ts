import { type ActedBy, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import type { AuditedState } from '../audit/audit-event.ts'
import { formatMoney } from '../billing/money.ts'
import { KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import { isAtLeastAsStrict, type Limits, type WantedLimits } from '../limits/limit.ts'
import { assertWithinPolicy } from '../limits/policy.ts'
import type { Transaction } from '../store.ts'
import { type ApiKey, isNoWider } from './api-key.ts'
import type { ApiKeyDeps } from './api-key-deps.ts'
import { type Metadata, storedForm } from './metadata.ts'
import { replaceLimits } from './replace-limits.ts'

export interface KeyChange {
  name?: string | null
  allowedNetworks?: string[]
  /** Null removes the external id. */
  externalId?: string | null
  /** Replaces all metadata; null or an empty object removes it. */
  metadata?: Metadata | null
  /** Replaces all of the owner's limits; those of the operator stay. */
  limits?: WantedLimits
}

type ChangeRefusal = 'not_found' | 'widens' | 'loosens'
type Outcome = { apiKey: ApiKey } | { refused: ChangeRefusal }

/**
 * Changes keys. A person may set any networks, and any limits within the policies. A caller that authenticates with a
 * key may only narrow the networks and tighten the limits of its owner's keys, so that a key that leaked cannot be made
 * more useful than it was.
 */
export function createChange({
  storage,
  audit,
  clock,
  changeLimits,
  policies,
}: Pick<ApiKeyDeps, 'storage' | 'audit' | 'clock' | 'changeLimits' | 'policies'>) {
  return { update, setOperatorLimits }

  async function update(
    userId: string,
    id: string,
    change: KeyChange,
    by: 'person' | 'key',
  ): Promise<ApiKey> {
    if (change.limits) assertWithinPolicy(change.limits, await policies.read())
    const foundKey = await storage.store.apiKeys.findOwned(userId, id)
    if (!foundKey) throw refusal('not_found')
    // Changes by a key count towards a limit of their own, so that a leaked key cannot exhaust its owner's.
    if (changesNetworks(foundKey, change) || change.limits) changeLimits.count(`${by}:${userId}`)
    const quotaId = newId(clock.now())
    const outcome = await storage.transaction<Outcome>(async tx => {
      const current = await lockIfRightsChange(tx, foundKey, change)
      if (!current) return { refused: 'not_found' }
      const reason = by === 'key' ? await refusalOfLoosening(tx, current, change) : null
      if (reason) return { refused: reason }
      const now = clock.now()
      const wanted = change.limits
      const limits =
        wanted && (await replaceLimits(tx, { keyId: id, current: current.limits, wanted, quotaId, by, now }))
      const apiKey = await tx.apiKeys.update(userId, id, { ...storedFields(current, change), limits }, now)
      return apiKey ? { apiKey } : { refused: 'not_found' }
    })
    if ('apiKey' in outcome) return outcome.apiKey
    throw refusal(outcome.refused)
  }

  async function setOperatorLimits(id: string, wanted: WantedLimits, by: ActedBy): Promise<ApiKey> {
    const [foundKey] = await storage.store.apiKeys.findMany([id])
    if (!foundKey) throw refusal('not_found')
    const quotaId = newId(clock.now())
    const changedKey = await audit.perform<ApiKey | null>(by, async tx => {
      await tx.users.lock(foundKey.userId)
      const key = await tx.apiKeys.findOwned(foundKey.userId, id)
      if (!key) return withoutChanges(null)
      const now = clock.now()
      const current = key.operatorLimits
      const replacement = { keyId: id, current, wanted, quotaId, by: 'operator' as const, now }
      const operatorLimits = await replaceLimits(tx, replacement)
      const apiKey = await tx.apiKeys.update(foundKey.userId, id, { operatorLimits }, now)
      const states = { before: auditedLimits(current), after: auditedLimits(operatorLimits) }
      const subject = { type: 'api_key' as const, id, user_id: foundKey.userId }
      return auditedOutcome(apiKey, { type: 'api_key.limits_changed', subject, ...states })
    })
    if (!changedKey) throw refusal('not_found')
    return changedKey
  }

  /** Why a caller with a key may not make the change: it would allow the key more than now. Null if it would not. */
  async function refusalOfLoosening(
    tx: Transaction,
    { limits, allowedNetworks }: ApiKey,
    change: KeyChange,
  ): Promise<ChangeRefusal | null> {
    if (change.allowedNetworks && !isNoWider(change.allowedNetworks, allowedNetworks)) return 'widens'
    if (!change.limits) return null
    const { quota } = limits
    const callsLeft = quota ? ((await tx.quotas.remaining([quota.id], clock.now())).get(quota.id) ?? 0) : 0
    return isAtLeastAsStrict(change.limits, limits, callsLeft) ? null : 'loosens'
  }
}

function auditedLimits({ requests, spend, quota }: Limits): AuditedState {
  return {
    requests: requests.map(({ limit, per }) => `${limit}/${per}`),
    spend: spend.map(({ amount, per }) => `${formatMoney(amount)}/${per}`),
    quota: quota?.refill ? `${quota.refill.amount}/${quota.refill.every}` : quota !== null,
  }
}

function storedFields(current: ApiKey, { metadata, allowedNetworks, limits: _, ...others }: KeyChange) {
  return {
    ...others,
    ...(changesNetworks(current, { allowedNetworks }) && { allowedNetworks }),
    ...(metadata !== undefined && { metadata: storedForm(metadata) }),
  }
}

/**
 * The key with which a change is compared. For a change of networks or limits it is read under the lock of the owner's
 * row, so that of two concurrent changes the later is compared with the result of the earlier.
 */
async function lockIfRightsChange(
  tx: Transaction,
  found: ApiKey,
  { allowedNetworks, limits }: KeyChange,
): Promise<ApiKey | null> {
  if (!allowedNetworks && !limits) return found
  await tx.users.lock(found.userId)
  return tx.apiKeys.findOwned(found.userId, found.id)
}

/** Whether the networks change. Only such a change is recorded for the hubs, which then load the key's status again. */
function changesNetworks(current: ApiKey, { allowedNetworks }: KeyChange): boolean {
  return allowedNetworks !== undefined && allowedNetworks.join() !== current.allowedNetworks.join()
}

const DETAILS: Record<ChangeRefusal, string> = {
  not_found: 'There is no such API key.',
  widens:
    'A key may only narrow allowed_networks: each must lie within one that is allowed now. Sign in to allow more.',
  loosens:
    'A key may only tighten limits: each that it has now must be sent again, and be no higher. Sign in to allow more.',
}

function refusal(reason: ChangeRefusal): KeywayError {
  return new KeywayError(reason === 'not_found' ? 'not_found' : 'session_required', DETAILS[reason])
}
