import type { MicroDollars } from '../billing/money.ts'
import { DAY, HOUR, type Instant, MINUTE, SECOND } from '../clock.ts'

export const REQUEST_WINDOWS = ['second', 'minute', 'hour', 'day'] as const
export type RequestWindow = (typeof REQUEST_WINDOWS)[number]
/** Milliseconds. */
export const WINDOW_MS: Record<RequestWindow, number> = {
  second: SECOND,
  minute: MINUTE,
  hour: HOUR,
  day: DAY,
}
export const SPEND_PERIODS = ['day', 'month', 'total'] as const
export type SpendPeriod = (typeof SPEND_PERIODS)[number]
export const REFILL_PERIODS = ['hour', 'day', 'month'] as const
export type RefillPeriod = (typeof REFILL_PERIODS)[number]

/** What a node does that cannot reach the database: refuse, or go on by its own count. */
export type WhenCutOff = 'closed' | 'open'

/** Requests in one window. */
export const MAX_REQUEST_LIMIT = 1_000_000_000
/** Calls of one quota, so that every sum is exact in a double. */
export const MAX_QUOTA = 1_000_000_000_000

/** At most `limit` requests in any sliding window of this length. */
export interface RequestLimit {
  limit: number
  per: RequestWindow
}

/** At most this amount charged per calendar day or month (UTC), or ever. */
export interface SpendLimit {
  amount: MicroDollars
  per: SpendPeriod
}

/** What a quota has again from the beginning of each calendar hour, day or month (UTC); what was left is not added. */
export interface Refill {
  amount: number
  every: RefillPeriod
}

/** A number of calls. What is left of it is in the row of this id (quota-store.ts). */
export interface Quota {
  id: string
  /** How many calls it had when it was set. */
  granted: number
  refill: Refill | null
}

/** What a key may do, at most one limit of each window or period. Counted per lineage; see `ApiKey.lineageId`. */
export interface Limits {
  requests: readonly RequestLimit[]
  spend: readonly SpendLimit[]
  quota: Quota | null
}

/** Limits as asked for. A quota without `remaining` keeps what is left, or begins with what a refill brings. */
export type WantedLimits = Omit<Limits, 'quota'> & { quota: WantedQuota | null }

/** Has at least one of the two. */
export interface WantedQuota {
  remaining: number | null
  refill: Refill | null
}

export const NO_LIMITS: Limits & WantedLimits = { requests: [], spend: [], quota: null }

export function isUnlimited({ requests, spend, quota }: Limits | WantedLimits): boolean {
  return requests.length === 0 && spend.length === 0 && quota === null
}

/** Those of the owner and of the operator. */
export function quotasOf({ limits, operatorLimits }: { limits: Limits; operatorLimits: Limits }): Quota[] {
  return [limits.quota, operatorLimits.quota].filter(quota => quota !== null)
}

/** The limits of a new key. @param quotaId for the quota's row, if there is one */
export function newLimits(wanted: WantedLimits, quotaId: string): Limits {
  return { ...wanted, quota: wanted.quota && newQuota(wanted.quota, quotaId, null) }
}

/** @param left what the quota has left that it follows, which it may not exceed; null where there is none */
export function newQuota({ remaining, refill }: WantedQuota, id: string, left: number | null): Quota {
  const granted = remaining ?? left ?? refill?.amount ?? 0
  return { id, granted: left === null ? granted : Math.min(granted, left), refill }
}

/**
 * Whether `wanted` limits at least as much as `current` in every respect: what a key may ask for.
 *
 * @param left what is left of the current quota
 */
export function isNoLooser(wanted: WantedLimits, current: Limits, left: number): boolean {
  return (
    current.requests.every(now =>
      wanted.requests.some(then => then.per === now.per && then.limit <= now.limit),
    ) &&
    current.spend.every(now =>
      wanted.spend.some(then => then.per === now.per && then.amount <= now.amount),
    ) &&
    (current.quota === null || isNoLooserQuota(wanted.quota, current.quota, left))
  )
}

function isNoLooserQuota(wanted: WantedQuota | null, { refill }: Quota, left: number): boolean {
  if (wanted === null || (wanted.remaining ?? 0) > left) return false
  if (wanted.refill === null) return true
  return refill !== null && wanted.refill.every === refill.every && wanted.refill.amount <= refill.amount
}

/** When a quota that is set or refilled now is refilled next: the first instant of the next period, in UTC. */
export function nextRefill(every: RefillPeriod, now: Instant): Instant {
  if (every === 'hour') return now - (now % HOUR) + HOUR
  if (every === 'day') return now - (now % DAY) + DAY
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}
