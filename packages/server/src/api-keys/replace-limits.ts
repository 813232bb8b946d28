import type { Instant } from '../clock.ts'
import { type Limits, newQuota, type Quota, type WantedLimits, type WantedQuota } from '../limits/limit.ts'
import type { Transaction } from '../store.ts'

export interface LimitsReplacement {
  keyId: string
  current: Limits
  wanted: WantedLimits
  /** Id of the row of a new quota. */
  quotaId: string
  /**
   * Who replaces the limits: the owner in person, a caller with one of the owner's keys, or the operator. For a caller
   * with a key, a new quota gets at most the remaining calls of the current one.
   */
  by: 'person' | 'key' | 'operator'
  now: Instant
}

/**
 * Replaces the row of the quota if the quota changes, and returns the limits to store. Calls that nodes leased from the
 * old quota do not count against the new one. Requires the lock of the owner's row.
 */
export async function replaceLimits(tx: Transaction, replacement: LimitsReplacement): Promise<Limits> {
  const { keyId, current, wanted, quotaId, now } = replacement
  const currentQuota = current.quota
  if (wanted.quota && currentQuota && keepsQuota(wanted.quota, currentQuota))
    return { ...wanted, quota: currentQuota }
  const maxCalls = currentQuota && (await endQuota(tx, currentQuota, replacement))
  if (!wanted.quota) return { ...wanted, quota: null }
  const quota = newQuota(wanted.quota, quotaId, maxCalls)
  await tx.quotas.insert(quota, keyId, now)
  return { ...wanted, quota }
}

function keepsQuota(wanted: WantedQuota, { refill }: Quota): boolean {
  if (wanted.remaining !== null) return false
  return wanted.refill?.amount === refill?.amount && wanted.refill?.every === refill?.every
}

/** Ends a quota. Returns its remaining calls if the new quota keeps them or may not have more; otherwise null. */
async function endQuota(
  tx: Transaction,
  { id }: Quota,
  { wanted, by, now }: LimitsReplacement,
): Promise<number | null> {
  if (wanted.quota && (wanted.quota.remaining === null || by === 'key')) return tx.quotas.close(id, now)
  await tx.quotas.retire(id, now)
  return null
}
