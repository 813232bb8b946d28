import type { ErrorCode } from '@keyway/sdk/protocol'
import type { Clock, Instant } from '../clock.ts'
import type { Fact } from '../endings/fact.ts'
import type { Storage } from '../store.ts'
import { createBatches } from '../usage/batches.ts'
import { type ReportRequest, rangeOf } from '../usage/range.ts'
import { bucketStart, UNIT_LENGTHS, type UsageCounts } from '../usage/usage.ts'
import {
  emptyBucket,
  type Gauge,
  type StatisticBucket,
  type StatisticName,
  setInBucket,
  statisticRows,
} from './statistic.ts'

/** Counts what happens on this node, for the statistics of the whole service. Counting only changes memory. */
export interface StatisticsCounter {
  /** @param at an instant of the hour that the amount is counted in; by default now */
  count(name: Exclude<StatisticName, Gauge>, amount?: number, at?: Instant): void
  /** Counts sign-ups and sign-ins among the facts of a committed transaction. */
  countFacts(facts: readonly Fact[]): void
  /** Adds the exchanges and API calls of a usage batch for one hour. */
  countUsage(hour: Instant, counts: UsageCounts): void
  /** Counts an HTTP response; `code` is the error code of a refusal, else null. */
  countResponse(response: { status: number; code: ErrorCode | null }): void
  /** Counts the outcome of a mail; an expired mail counts as failed. */
  countMail(state: 'sent' | 'failed' | 'expired'): void
}

export interface Statistics extends StatisticsCounter {
  /** Stores the counts, each once at most. Rejects if that failed: they are kept for a later flush. */
  flush(): Promise<void>
  /** Measures the gauges: live agents, as counted by the caller, and once an hour the number of people. */
  measure(liveAgents: number): Promise<void>
  /** The current number of people, or null if there are too many to be counted on each call. */
  people(): Promise<number | null>
  /**
   * Every bucket of the range, oldest first, including empty ones, up to the current one; complete up to some seconds
   * ago.
   *
   * @throws KeywayError `invalid_request` (a range that is empty, too long, or no longer kept)
   */
  report(request?: ReportRequest): Promise<StatisticBucket[]>
}

interface Batch {
  hour: Instant
  values: ReadonlyMap<StatisticName, number>
}

/** Maximum number of accounts that are counted on each call: counting them takes less than a millisecond. */
const MAX_COUNTED_PEOPLE = 1000

/**
 * Each node counts in its own memory, and adds its counts to shared rows; a crash loses the counts of less than ten
 * seconds.
 */
export function createStatistics({ storage, clock }: { storage: Storage; clock: Clock }): Statistics {
  const batches = createBatches<Batch>({
    storage,
    clock,
    add: (tx, { hour, values }) => tx.statistics.add(statisticRows(hour, values)),
  })
  /** Values since the last flush, by hour. */
  const unflushedValues = new Map<Instant, Map<StatisticName, number>>()
  let lastFlush: Promise<void> = Promise.resolve()

  return { count, countFacts, countUsage, countResponse, countMail, flush, measure, people, report }

  function count(name: StatisticName, amount = 1, at = clock.now()): void {
    const values = valuesOfHour(at)
    values.set(name, (values.get(name) ?? 0) + amount)
  }

  function countFacts(facts: readonly Fact[]): void {
    for (const fact of facts) {
      if (fact.type !== 'security_event') continue
      if (fact.event.type === 'account_created') count('sign_ups')
      if (fact.event.type === 'sign_in') count('sign_ins')
    }
  }

  function countUsage(hour: Instant, { exchanges, apiCalls }: UsageCounts): void {
    if (exchanges > 0) count('exchanges', exchanges, hour)
    if (apiCalls > 0) count('api_calls', apiCalls, hour)
  }

  function countResponse({ status, code }: { status: number; code: ErrorCode | null }): void {
    if (status >= 500) count('errors')
    else if (code !== null) count(`refused:${code}`)
  }

  function countMail(state: 'sent' | 'failed' | 'expired'): void {
    count(state === 'sent' ? 'mails_sent' : 'mails_failed')
  }

  function flush(): Promise<void> {
    // Serialized, so that batches are recorded in their order.
    lastFlush = lastFlush.catch(() => {}).then(storeAll)
    return lastFlush
  }

  async function storeAll(): Promise<void> {
    for (const [hour, values] of unflushedValues) batches.push({ hour, values })
    unflushedValues.clear()
    await batches.store()
  }

  async function measure(liveAgents: number): Promise<void> {
    raiseGauge('live_agents', liveAgents)
    const hour = bucketStart('hour', clock.now())
    const storedValues = await storage.store.statistics.read('hour', hour, hour + 1)
    if (storedValues.some(({ name }) => name === 'people')) return
    // Counted in a transaction: with SQLite, a read outside of a transaction would block the main thread.
    raiseGauge('people', await storage.transaction(tx => tx.statistics.countPeople()))
  }

  function people(): Promise<number | null> {
    return storage.store.statistics.countFewPeople(MAX_COUNTED_PEOPLE)
  }

  function raiseGauge(name: Gauge, value: number): void {
    const values = valuesOfHour(clock.now())
    values.set(name, Math.max(values.get(name) ?? 0, value))
  }

  function valuesOfHour(at: Instant): Map<StatisticName, number> {
    const hour = bucketStart('hour', at)
    const values = unflushedValues.get(hour) ?? new Map<StatisticName, number>()
    if (values.size === 0) unflushedValues.set(hour, values)
    return values
  }

  async function report(request: ReportRequest = {}): Promise<StatisticBucket[]> {
    const { unit, from, to } = rangeOf(request, clock.now())
    const buckets = new Map<Instant, StatisticBucket>()
    for (let start = from; start < to; start += UNIT_LENGTHS[unit]) buckets.set(start, emptyBucket(start))
    for (const row of await storage.store.statistics.read(unit, from, to))
      setInBucket(buckets.get(row.start)!, row)
    return [...buckets.values()]
  }
}
