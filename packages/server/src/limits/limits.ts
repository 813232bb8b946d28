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
import { type Demand, PERSON } from './subject.ts'

/** What decides how much a key may do. */
export interface LimitedKey {
  userId: string
  lineageId: string
  limits: Limits
  operatorLimits: Limits
}

/** What is left after a call. */
export interface LeftOfLimits {
  requests: RateLimitState[]
  /** Null: it has no quota. Of two the lower. */
  quota: number | null
}

export interface KeyLimiter {
  /**
   * Counts an exchange or an API call of the key. Null where nothing limits it; a promise only where this node must ask
   * the database.
   *
   * @throws KeywayError `rate_limited`, `unavailable` (cut off from the database; see KEYWAY_LIMITS_WHEN_CUT_OFF)
   */
  take(key: LimitedKey): RateLimitState[] | null | Promise<RateLimitState[]>
  /**
   * Counts `count` calls of an app on behalf of the key, against its rates and its quota; all of it or nothing.
   *
   * @throws KeywayError as `take`, and `quota_exhausted`
   */
  consume(key: LimitedKey, count: number): Promise<LeftOfLimits>
  /** What is left, without counting anything. */
  left(key: LimitedKey): Promise<LeftOfLimits>
  /** What is left of quotas, by their ids. Reads nothing where there is none. */
  quotasLeft(quotas: readonly Quota[]): Promise<Map<string, number>>
  /** Periodic; see `RequestLimits.sweep`. */
  sweep(): Promise<void>
  /** At shutdown: gives back what this node holds. */
  release(): Promise<void>
}

/** One decision over three sources: the owner's limits, the operator's, and the policy. Of each window the lowest counts. */
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
  const requests = createRequestLimits({ clock, store: store.limitLeases, whenCutOff })
  const quotas = createQuotas({ clock, store: store.quotas })

  return {
    take(key) {
      const inForce = policy()
      // The path of most exchanges allocates nothing.
      if (isUnlimitedBy(key, inForce)) return null
      const demands = demandsOf(key, inForce)
      return demands.length === 0 ? null : requests.take(demands, 1)
    },
    async consume(key, count) {
      const theirs = quotasOf(key)
      const demands = demandsOf(key, policy())
      if (theirs.length > 0) await quotas.take(theirs, count)
      try {
        const states = demands.length === 0 ? [] : await requests.take(demands, count)
        return { requests: states, quota: await lowestOf(theirs) }
      } catch (error) {
        quotas.undo(theirs, count)
        throw error
      }
    },
    async left(key) {
      return {
        requests: await requests.peek(demandsOf(key, policy())),
        quota: await lowestOf(quotasOf(key)),
      }
    },
    quotasLeft: theirs => quotas.left(theirs),
    async sweep() {
      await requests.sweep()
      await quotas.sweep()
    },
    async release() {
      await Promise.all([requests.releaseAll(), quotas.giveBackAll()])
    },
  }

  async function lowestOf(theirs: readonly Quota[]): Promise<number | null> {
    if (theirs.length === 0) return null
    const known = theirs.map(quota => quotas.known(quota))
    if (known.every(left => left !== null)) return Math.min(...known)
    return Math.min(...(await quotas.left(theirs)).values())
  }
}

function isUnlimitedBy(
  { limits, operatorLimits }: LimitedKey,
  { keyLimits, personLimits }: LimitPolicy,
): boolean {
  return limits === NO_LIMITS && operatorLimits === NO_LIMITS && keyLimits.length + personLimits.length === 0
}

function demandsOf(
  { userId, lineageId, limits, operatorLimits }: LimitedKey,
  { keyLimits, personLimits }: LimitPolicy,
): Demand[] {
  const demands: Demand[] = []
  const ofKey = strictest(limits.requests, operatorLimits.requests, keyLimits)
  if (ofKey.length > 0) demands.push({ subject: lineageId, windows: ofKey })
  if (personLimits.length > 0) demands.push({ subject: PERSON + userId, windows: personLimits })
  return demands
}

/** Of each window the lowest limit, shortest window first. */
function strictest(...sources: (readonly RequestLimit[])[]): readonly RequestLimit[] {
  const [first, ...others] = sources.filter(source => source.length > 0)
  if (!first || others.length === 0) return first ?? []
  const all = [...first, ...others.flat()]
  return REQUEST_WINDOWS.flatMap(per => {
    const limits = all.filter(each => each.per === per).map(each => each.limit)
    return limits.length > 0 ? [{ per, limit: Math.min(...limits) }] : []
  })
}
