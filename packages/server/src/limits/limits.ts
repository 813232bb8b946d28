import type { Clock } from '../clock.ts'
import type { RateLimitState } from '../errors.ts'
import type { Store } from '../store.ts'
import {
  type Limits,
  NO_LIMITS,
  type Quota,
  quotasOf,
  REQUEST_WINDOWS,
  type RequestLimit,
  type WhenCutOff,
} from './limit.ts'
import type { LimitPolicy, PolicySource } from './policy.ts'
import { createQuotas } from './quotas.ts'
import { createRequestLimits } from './request-limits.ts'
import { PERSON_PREFIX, type SubjectLimits } from './subject.ts'

/** The properties of a key on which its limits depend. */
export interface LimitedKey {
  id: string
  userId: string
  lineageId: string
  limits: Limits
  operatorLimits: Limits
}

export interface LeftOfLimits {
  requests: RateLimitState[]
  /** The lower number of remaining calls of the key's quotas (the owner's, the operator's); null if it has none. */
  quota: number | null
}

export interface KeyLimiter {
  /**
   * Counts an exchange or an API call of the key. Returns null if no limit applies, and a promise only if this node
   * must ask the database.
   * @throws KeywayError `rate_limited`, `unavailable` (cut off from the database; see KEYWAY_LIMITS_WHEN_CUT_OFF)
   */
  take(key: LimitedKey): RateLimitState[] | null | Promise<RateLimitState[]>
  /**
   * Counts `count` calls that the key made to an app, against the key's request limits and quotas: all or none.
   *
   * @throws KeywayError as `take`, and `quota_exhausted`
   */
  consume(key: LimitedKey, count: number): Promise<LeftOfLimits>
  /** What remains of the limits, without counting a request. */
  remaining(key: LimitedKey): Promise<LeftOfLimits>
  /** The remaining calls of quotas, by their ids. Reads nothing if there are none. */
  quotasLeft(quotas: readonly Quota[]): Promise<Map<string, number>>
  /** Called periodically; see `RequestLimits.sweep`. */
  sweep(): Promise<void>
  /** Called at shutdown: gives back this node's shares of request limits and its unused calls of quotas. */
  release(): Promise<void>
}

/** Combines the limits of owner, operator and policy: of each window the lowest limit applies, and every quota does. */
export function createKeyLimiter({
  clock,
  store,
  policy,
  whenCutOff,
}: {
  clock: Pick<Clock, 'now'>
  store: Pick<Store, 'limitLeases' | 'quotas'>
  policy: PolicySource
  whenCutOff: WhenCutOff
}): KeyLimiter {
  const requestLimits = createRequestLimits({ clock, store: store.limitLeases, whenCutOff })
  const quotas = createQuotas({ clock, store: store.quotas })

  return {
    take(key) {
      const currentPolicy = policy()
      // Most exchanges return here, without allocations.
      if (isUnlimitedBy(key, currentPolicy)) return null
      const subjectLimits = subjectLimitsOf(key, currentPolicy)
      return subjectLimits.length === 0 ? null : requestLimits.take(subjectLimits, 1)
    },
    async consume(key, count) {
      const keyQuotas = quotasOf(key)
      const subjectLimits = subjectLimitsOf(key, policy())
      if (keyQuotas.length > 0) await quotas.take(keyQuotas, count)
      try {
        const states = subjectLimits.length === 0 ? [] : await requestLimits.take(subjectLimits, count)
        return { requests: states, quota: await lowestOf(keyQuotas) }
      } catch (error) {
        quotas.undo(keyQuotas, count)
        throw error
      }
    },
    async remaining(key) {
      return {
        requests: await requestLimits.peek(subjectLimitsOf(key, policy())),
        quota: await lowestOf(quotasOf(key)),
      }
    },
    quotasLeft: keyQuotas => quotas.remaining(keyQuotas),
    async sweep() {
      await requestLimits.sweep()
      await quotas.sweep()
    },
    async release() {
      await Promise.all([requestLimits.releaseAll(), quotas.giveBackAll()])
    },
  }

  /** The lowest number of remaining calls of these quotas; null if there are none. */
  async function lowestOf(keyQuotas: readonly Quota[]): Promise<number | null> {
    if (keyQuotas.length === 0) return null
    const knownCounts = keyQuotas.map(quota => quotas.knownRemaining(quota))
    if (knownCounts.every(count => count !== null)) return Math.min(...knownCounts)
    return Math.min(...(await quotas.remaining(keyQuotas)).values())
  }
}

function isUnlimitedBy(
  { limits, operatorLimits }: LimitedKey,
  { keyLimits, personLimits }: LimitPolicy,
): boolean {
  return limits === NO_LIMITS && operatorLimits === NO_LIMITS && keyLimits.length + personLimits.length === 0
}

function subjectLimitsOf(
  { userId, lineageId, limits, operatorLimits }: LimitedKey,
  { keyLimits, personLimits }: LimitPolicy,
): SubjectLimits[] {
  const subjectLimits: SubjectLimits[] = []
  const keyWindows = strictestLimits(limits.requests, operatorLimits.requests, keyLimits)
  if (keyWindows.length > 0) subjectLimits.push({ subject: lineageId, windows: keyWindows })
  if (personLimits.length > 0) subjectLimits.push({ subject: PERSON_PREFIX + userId, windows: personLimits })
  return subjectLimits
}

/** The lowest limit of each window, shortest window first. */
function strictestLimits(...sources: (readonly RequestLimit[])[]): readonly RequestLimit[] {
  const [first, ...otherSources] = sources.filter(source => source.length > 0)
  if (!first || otherSources.length === 0) return first ?? []
  const allLimits = [...first, ...otherSources.flat()]
  return REQUEST_WINDOWS.flatMap(per => {
    const limits = allLimits.filter(each => each.per === per).map(each => each.limit)
    return limits.length > 0 ? [{ per, limit: Math.min(...limits) }] : []
  })
}
