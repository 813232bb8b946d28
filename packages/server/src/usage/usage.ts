import { DAY, HOUR, type Instant } from '../clock.ts'

/** `connectedMs` counts milliseconds of open connections, `charged` micro-dollars. */
export const COUNTERS = [
  'exchanges',
  'apiCalls',
  'introspections',
  'connections',
  'connectedMs',
  'messagesSent',
  'messagesReceived',
  'charged',
] as const
export type Counter = (typeof COUNTERS)[number]

/** Counts of a period; `refused` is by error code. */
export type UsageCounts = Record<Counter, number> & { refused: Record<string, number> }

export type UsageUnit = 'hour' | 'day'

/** Hours and days are those of UTC. */
export const UNIT_LENGTHS: Record<UsageUnit, number> = { hour: HOUR, day: DAY }
/** How long the stored counts of an hour or a day are kept, from its end on. */
export const USAGE_KEPT_FOR: Record<UsageUnit, number> = { hour: 90 * DAY, day: 400 * DAY }

/** The stored counts of one hour or day, of a key or of a person (`keyId` null). */
export interface UsageRow extends UsageCounts {
  userId: string
  keyId: string | null
  unit: UsageUnit
  start: Instant
}

/** The usage of one hour or day in a report. */
export interface UsageBucket extends UsageCounts {
  start: Instant
}

export function noUsage(): UsageCounts {
  return {
    exchanges: 0,
    apiCalls: 0,
    introspections: 0,
    connections: 0,
    connectedMs: 0,
    messagesSent: 0,
    messagesReceived: 0,
    charged: 0,
    refused: {},
  }
}

export function addUsage(sum: UsageCounts, counts: UsageCounts): void {
  for (const counter of COUNTERS) sum[counter] += counts[counter]
  for (const [code, count] of Object.entries(counts.refused))
    sum.refused[code] = (sum.refused[code] ?? 0) + count
}

export function bucketStart(unit: UsageUnit, at: Instant): Instant {
  return at - (at % UNIT_LENGTHS[unit])
}

/** The start of the oldest bucket that is not pruned yet. */
export function oldestBucketStart(unit: UsageUnit, now: Instant): Instant {
  return bucketStart(unit, now - USAGE_KEPT_FOR[unit])
}

/** The rows that counts of one hour are added to: hour and day, of the user and, unless `keyId` is null, of the key. */
export function usageRows(
  userId: string,
  keyId: string | null,
  at: Instant,
  counts: UsageCounts,
): UsageRow[] {
  const keyIds = keyId === null ? [null] : [null, keyId]
  return keyIds.flatMap(each =>
    (['day', 'hour'] as const).map(unit => ({
      ...counts,
      userId,
      keyId: each,
      unit,
      start: bucketStart(unit, at),
    })),
  )
}
