import type { MicroDollars } from '../billing/money.ts'
import { DAY, HOUR, type Instant, MINUTE, SECOND } from '../clock.ts'

export const REQUEST_WINDOWS = ['second', 'minute', 'hour', 'day'] as const
export type RequestWindow = (typeof REQUEST_WINDOWS)[number]
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

/**
 * Whether a node that cannot reach the database refuses requests (`closed`) or limits them by its own count (`open`).
 */
export type WhenCutOff = 'closed' | 'open'

export const MAX_REQUEST_LIMIT = 1_000_000_000
/** Maximum number of calls of a quota, so that every sum is exact in a double. */
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

/** The number of calls that a quota has at the start of each calendar hour, day or month (UTC). Unused ones expire. */
export interface Refill {
  amount: number
  every: RefillPeriod
}

/** The number of calls that a key may consume. The remaining number is in the row with this id (quota-store.ts). */
export interface Quota {
  id: string
  /** The number of calls when the quota was set. */
  granted: number
  refill: Refill | null
}

/**
 * The limits of a key, at most one of each window or period. A successor by rotation continues the counts
 * (`ApiKey.lineageId`).
 */
export interface Limits {
  requests: readonly RequestLimit[]
  spend: readonly SpendLimit[]
  quota: Quota | null
}

/**
 * Requested limits. A quota without `remaining` gets the calls that remain of the key's current quota, or the amount of
 * one refill if the key has no quota.
 */
export type WantedLimits = Omit<Limits, 'quota'> & { quota: WantedQuota | null }

/** A requested quota; at least one field is set. */
export interface WantedQuota {
  remaining: number | null
  refill: Refill | null
}

export const NO_LIMITS: Limits & WantedLimits = { requests: [], spend: [], quota: null }

export function isUnlimited({ requests, spend, quota }: Limits | WantedLimits): boolean {
  return requests.length === 0 && spend.length === 0 && quota === null
}

/** The quotas of a key: the one that its owner set, and the one that the operator set. */
export function quotasOf({ limits, operatorLimits }: { limits: Limits; operatorLimits: Limits }): Quota[] {
  return [limits.quota, operatorLimits.quota].filter(quota => quota !== null)
}

/** Parses a limit such as `50/second`, of at most MAX_REQUEST_LIMIT; null for any other text. */
export function parseRequestLimit(text: string): RequestLimit | null {
  const [, limitText = '', per = ''] = /^([1-9]\d{0,9})\/(second|minute|hour|day)$/.exec(text) ?? []
  const limit = Number(limitText)
  return per && limit <= MAX_REQUEST_LIMIT ? { limit, per: per as RequestWindow } : null
}

/** The limits sorted by window; null if two have the same window. */
export function sortedRequestLimits(limits: readonly RequestLimit[]): RequestLimit[] | null {
  if (new Set(limits.map(({ per }) => per)).size < limits.length) return null
  return limits.toSorted(
    (left, right) => REQUEST_WINDOWS.indexOf(left.per) - REQUEST_WINDOWS.indexOf(right.per),
  )
}

/** The limits of a new key. @param quotaId the id of the quota's row, if the key has a quota */
export function newLimits(wanted: WantedLimits, quotaId: string): Limits {
  return { ...wanted, quota: wanted.quota && newQuota(wanted.quota, quotaId, null) }
}

/**
 * The quota with the wanted calls, or else with the maximum, or else with the amount of a refill.
 *
 * @param maxGranted maximum number of calls: the remaining calls of the previous quota, if the new one continues it or
 *   is set by a caller with a key; null for no maximum
 */
export function newQuota({ remaining, refill }: WantedQuota, id: string, maxGranted: number | null): Quota {
  const calls = remaining ?? maxGranted ?? refill?.amount ?? 0
  return { id, granted: maxGranted === null ? calls : Math.min(calls, maxGranted), refill }
}

/**
 * Whether `wanted` limits at least as much as `current` in every respect, as a change by a caller with a key must.
 * @param remaining the calls that remain of the current quota
 */
export function isAtLeastAsStrict(wanted: WantedLimits, current: Limits, remaining: number): boolean {
  return (
    current.requests.every(old =>
      wanted.requests.some(each => each.per === old.per && each.limit <= old.limit),
    ) &&
    current.spend.every(old =>
      wanted.spend.some(each => each.per === old.per && each.amount <= old.amount),
    ) &&
    (current.quota === null || isNoLooserQuota(wanted.quota, current.quota, remaining))
  )
}

function isNoLooserQuota(wanted: WantedQuota | null, { refill }: Quota, remaining: number): boolean {
  if (wanted === null || (wanted.remaining ?? 0) > remaining) return false
  if (wanted.refill === null) return true
  return refill !== null && wanted.refill.every === refill.every && wanted.refill.amount <= refill.amount
}

/** The next refill of a quota that is set or refilled now: the first instant of the next period, in UTC. */
export function nextRefill(every: RefillPeriod, now: Instant): Instant {
  if (every === 'hour') return now - (now % HOUR) + HOUR
  if (every === 'day') return now - (now % DAY) + DAY
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}
