import type { ErrorCode } from '@keyway/sdk/protocol'
import type { Clock, Instant } from '../clock.ts'
import type { Fact } from '../endings/fact.ts'
import type { Storage } from '../store.ts'
import { createBatches } from '../usage/batches.ts'
import { rangeOf, type WantedReport } from '../usage/range.ts'
import { bucketStart, UNIT_LENGTHS, type UsageCounts } from '../usage/usage.ts'
import {
  emptyBucket,
  type Level,
  place,
  type StatisticBucket,
  type StatisticName,
  statisticRows,
} from './statistic.ts'

/** Counts the whole service in memory, without reads or writes. */
export interface StatisticsCounter {
  /** @param at in which hour it counts; now by default */
  count(name: Exclude<StatisticName, Level>, amount?: number, at?: Instant): void
  /** The security events of a committed transaction: sign-ups and sign-ins. */
  countFacts(facts: readonly Fact[]): void
  /** Adds what a batch of usage has counted in one hour. */
  countUsage(hour: Instant, counts: UsageCounts): void
  /** An answer over HTTP. @param code of a refusal */
  countAnswer(answer: { status: number; code: ErrorCode | null }): void
  /** The outcome of a mail. */
  countMail(state: 'sent' | 'failed' | 'expired'): void
}

export interface Statistics extends StatisticsCounter {
  /** Stores what was counted, at most once each. Rejects where it could not: it is kept, and stored by a later flush. */
  flush(): Promise<void>
  /** Measures the levels: live agents, and once an hour the people. The caller has counted the agents. */
  measure(liveAgents: number): Promise<void>
  /** The people now, where there are few enough to count them on each call; null: there are more. */
  people(): Promise<number | null>
  /**
   * Every bucket of the range, oldest first, empty ones included, none after the present one; complete up to some
   * seconds ago.
   *
   * @throws KeywayError `invalid_request` (a range that is empty, too long, or no longer kept)
   */
  report(wanted?: WantedReport): Promise<StatisticBucket[]>
}

/** Values of one hour. */
interface Batch {
  hour: Instant
  values: ReadonlyMap<StatisticName, number>
}

/** Counted within a millisecond. */
const FEW_PEOPLE = 1000

/** Each node counts for itself, and adds its counts to the rows that all share; a crash loses less than ten seconds. */
export function createStatistics({ storage, clock }: { storage: Storage; clock: Clock }): Statistics {
  const batches = createBatches<Batch>({
    storage,
    clock,
    add: (tx, { hour, values }) => tx.statistics.add(statisticRows(hour, values)),
  })
  const open = new Map<Instant, Map<StatisticName, number>>()
  let flushing: Promise<void> = Promise.resolve()

  return { count, countFacts, countUsage, countAnswer, countMail, flush, measure, people, report }

  function count(name: StatisticName, amount = 1, at = clock.now()): void {
    const values = hourOf(at)
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

  function countAnswer({ status, code }: { status: number; code: ErrorCode | null }): void {
    if (status >= 500) count('errors')
    else if (code !== null) count(`refused:${code}`)
  }

  function countMail(state: 'sent' | 'failed' | 'expired'): void {
    count(state === 'sent' ? 'mails_sent' : 'mails_failed')
  }

  function flush(): Promise<void> {
    // Serialized: batches are recorded in their order.
    flushing = flushing.catch(() => {}).then(storeAll)
    return flushing
  }

  async function storeAll(): Promise<void> {
    for (const [hour, values] of open) batches.push({ hour, values })
    open.clear()
    await batches.store()
  }

  async function measure(liveAgents: number): Promise<void> {
    raise('live_agents', liveAgents)
    const hour = bucketStart('hour', clock.now())
    const known = await storage.store.statistics.read('hour', hour, hour + 1)
    if (known.some(({ name }) => name === 'people')) return
    // In a transaction, since SQLite's reads outside of it would hold up the event loop for that long.
    raise('people', await storage.transaction(tx => tx.statistics.countPeople()))
  }

  function people(): Promise<number | null> {
    return storage.store.statistics.countFewPeople(FEW_PEOPLE)
  }

  function raise(name: Level, value: number): void {
    const values = hourOf(clock.now())
    values.set(name, Math.max(values.get(name) ?? 0, value))
  }

  function hourOf(at: Instant): Map<StatisticName, number> {
    const hour = bucketStart('hour', at)
    const values = open.get(hour) ?? new Map<StatisticName, number>()
    if (values.size === 0) open.set(hour, values)
    return values
  }

  async function report(wanted: WantedReport = {}): Promise<StatisticBucket[]> {
    const { unit, from, to } = rangeOf(wanted, clock.now())
    const buckets = new Map<Instant, StatisticBucket>()
    for (let start = from; start < to; start += UNIT_LENGTHS[unit]) buckets.set(start, emptyBucket(start))
    for (const row of await storage.store.statistics.read(unit, from, to)) place(buckets.get(row.start)!, row)
    return [...buckets.values()]
  }
}
