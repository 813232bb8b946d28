import type { ApiKey } from '../api-keys/api-key.ts'
import { DAY, type Instant } from '../clock.ts'
import { SPEND_PERIODS, type SpendLimit, type SpendPeriod } from '../limits/limit.ts'
import type { MicroDollars } from './money.ts'

/** The most that may be spent in each period; null for no limit. */
export type SpendCaps = Record<SpendPeriod, MicroDollars | null>

/**
 * What a key and its predecessors were charged in total, and in the newest UTC day and month with a charge (numbered as
 * by `periodsOf`). The `createdAt` of a ledger entry decides its day and month, so these are sums over the ledger.
 */
export interface SpentSums {
  day: number
  daySpent: MicroDollars
  month: number
  monthSpent: MicroDollars
  totalSpent: MicroDollars
}

/** A charge that was booked or refused, with the limits of its key and what was spent. */
export interface KeySpend {
  key: ApiKey
  caps: SpendCaps
  spent: SpentSums
  /** The charged amount; 0 if the charge was refused. */
  amount: MicroDollars
  /** The period whose limit refused the charge; null if the charge was booked. */
  refusedBy: SpendPeriod | null
  /** The instant of the ledger entry, or of the refusal, which decides the day and the month of the charge. */
  at: Instant
}

export const NO_CAPS: SpendCaps = { day: null, month: null, total: null }
export const NOTHING_SPENT: SpentSums = { day: 0, daySpent: 0, month: 0, monthSpent: 0, totalSpent: 0 }

/** The strictest limit of each period among the given limits. */
export function capsOf(...limits: (readonly SpendLimit[])[]): SpendCaps {
  const caps = { ...NO_CAPS }
  for (const { per, amount } of limits.flat()) caps[per] = Math.min(amount, caps[per] ?? amount)
  return caps
}

/** The number of the UTC day and of the UTC month since 1970. */
export function periodsOf(at: Instant): { day: number; month: number } {
  const date = new Date(at)
  return { day: Math.floor(at / DAY), month: (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth() }
}

export function spentIn(per: SpendPeriod, spent: SpentSums, at: Instant): MicroDollars {
  const current = periodsOf(at)
  if (per === 'total') return spent.totalSpent
  if (per === 'month') return spent.month === current.month ? spent.monthSpent : 0
  return spent.day === current.day ? spent.daySpent : 0
}

/** The shortest period whose limit would be exceeded by spending `amount` more; null if none would. */
export function periodExceeded(
  caps: SpendCaps,
  spent: SpentSums,
  amount: MicroDollars,
  at: Instant,
): SpendPeriod | null {
  return SPEND_PERIODS.find(per => spentIn(per, spent, at) + amount > (caps[per] ?? Infinity)) ?? null
}

/** When the current period ends, and with it the count of what was spent in it; null for a limit in total. */
export function endOf(per: SpendPeriod, at: Instant): Instant | null {
  if (per === 'total') return null
  const date = new Date(at)
  if (per === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
  return (Math.floor(at / DAY) + 1) * DAY
}

export function remainingOf(caps: SpendCaps, spent: SpentSums, at: Instant) {
  return SPEND_PERIODS.flatMap(per => {
    const limit = caps[per]
    if (limit === null) return []
    return [{ per, limit, remaining: Math.max(0, limit - spentIn(per, spent, at)), endsAt: endOf(per, at) }]
  })
}
