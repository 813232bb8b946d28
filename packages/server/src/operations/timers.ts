import type { Deletions } from '../account-changes/deletions.ts'
import { announceExpired } from '../api-keys/key-expiry.ts'
import { USE_FLUSH_INTERVAL } from '../api-keys/last-used.ts'
import type { AuditKeeping } from '../audit/audit-keeping.ts'
import { type ClockReference, HOUR, MINUTE, SECOND, type SynchronizedClock } from '../clock.ts'
import { NODE_TIMEOUT_MS } from '../hub/presence-store.ts'
import { SWEEP_INTERVAL } from '../limits/request-limits.ts'
import type { Log } from '../log.ts'
import type { Statistics } from '../statistics/statistics.ts'
import type { Storage } from '../store.ts'
import { USAGE_FLUSH_INTERVAL } from '../usage/meter.ts'
import { createClockSync } from './clock-sync.ts'
import { createHousekeeping } from './housekeeping.ts'

/** Interval at which the leases of dead nodes, on mails and webhook events, are released. */
const RELEASE_INTERVAL = 3 * SECOND
/** Expiry warnings are due on a day, so a delay of minutes does not matter. */
const EXPIRY_WARNING_INTERVAL = 10 * MINUTE
/** Interval at which live agents are counted for the statistics; people are counted only once an hour. */
const MEASURE_INTERVAL = MINUTE
const EXPIRED_KEYS_INTERVAL = 30 * SECOND
const HOUSEKEEPING_INTERVAL = MINUTE
const DELETION_INTERVAL = MINUTE
const AUDIT_SEAL_INTERVAL = HOUR
/** Maximum number of audit rows that are pruned per round. */
const AUDIT_BATCH = 1000
/** Intervals of clock synchronization. Reading the system's clock is a local call; the database's needs round trips. */
const CLOCK_INTERVALS: Record<ClockReference, number> = { system: SECOND, database: MINUTE }

interface Job {
  interval: number
  /** The log message when the job fails. It runs again at the next interval. */
  failure: string
  run(): Promise<unknown>
}

export interface Timers {
  start(): void
  stop(): void
}

export function createTimers({
  storage,
  clock,
  clockReference,
  apiKeys,
  meter,
  statistics,
  limiter,
  auditKeeping,
  deletions,
  log,
}: {
  storage: Storage
  clock: SynchronizedClock
  clockReference: ClockReference
  apiKeys: { flushUses(): Promise<void>; warnOfExpiry(): Promise<unknown> }
  meter: { flush(): Promise<void> }
  statistics: Pick<Statistics, 'flush' | 'measure'>
  limiter: { sweep(): Promise<void> }
  auditKeeping: AuditKeeping
  deletions: Pick<Deletions, 'deleteDue'>
  log: Log
}): Timers {
  const { store } = storage
  const clockSync = createClockSync({ clock, reference: clockReference, readClock: storage.readClock, log })
  const housekeeping = createHousekeeping({ storage, clock, log })
  const expiryWarnings: Job = {
    interval: EXPIRY_WARNING_INTERVAL,
    failure: 'owners of keys that expire soon could not be notified yet',
    run: apiKeys.warnOfExpiry,
  }
  const measurement: Job = {
    interval: MEASURE_INTERVAL,
    failure: 'agents and people were not counted',
    run: async () => statistics.measure(await store.presence.countLive(clock.now() - NODE_TIMEOUT_MS)),
  }
  const jobs: Job[] = [
    expiryWarnings,
    measurement,
    { interval: USE_FLUSH_INTERVAL, failure: 'last uses were not stored', run: apiKeys.flushUses },
    { interval: USAGE_FLUSH_INTERVAL, failure: 'usage was not stored yet', run: meter.flush },
    { interval: USAGE_FLUSH_INTERVAL, failure: 'statistics were not stored yet', run: statistics.flush },
    {
      interval: SWEEP_INTERVAL,
      failure: 'the lease of request limits was not renewed',
      run: limiter.sweep,
    },
    {
      interval: CLOCK_INTERVALS[clockReference],
      failure: 'the clock of the database could not be read',
      run: clockSync.run,
    },
    {
      interval: RELEASE_INTERVAL,
      failure: 'leases of dead nodes were not released',
      run: releaseAbandoned,
    },
    {
      interval: EXPIRED_KEYS_INTERVAL,
      failure: 'expired keys could not be announced to webhooks yet',
      run: () => announceExpired({ storage, clock }),
    },
    {
      interval: AUDIT_SEAL_INTERVAL,
      failure: 'the head of the audit was not authenticated yet',
      run: auditKeeping.seal,
    },
    {
      interval: HOUSEKEEPING_INTERVAL,
      failure: 'old rows of the audit were not removed',
      run: () => auditKeeping.prune(AUDIT_BATCH),
    },
    {
      interval: DELETION_INTERVAL,
      failure: 'accounts whose deletion is due were not deleted yet',
      run: deletions.deleteDue,
    },
    { interval: HOUSEKEEPING_INTERVAL, failure: 'housekeeping failed', run: housekeeping.run },
  ]
  const timers: NodeJS.Timeout[] = []

  async function releaseAbandoned(): Promise<void> {
    const seenSince = clock.now() - NODE_TIMEOUT_MS
    await store.outbox.releaseAbandoned(seenSince)
    await store.webhookDeliveries.releaseAbandoned(seenSince)
  }

  return {
    start() {
      for (const job of jobs) timers.push(setInterval(toTimerCallback(job, log), job.interval))
      for (const job of [expiryWarnings, measurement]) void toTimerCallback(job, log)()
    },
    stop() {
      for (const timer of timers) clearInterval(timer)
    },
  }
}

/** Returns a function that runs the job, unless it is running already, and logs its failures. */
function toTimerCallback({ failure, run }: Job, log: Log): () => Promise<void> {
  let isRunning = false
  return async () => {
    if (isRunning) return
    isRunning = true
    try {
      await run()
    } catch (error) {
      log.warn({ error: String(error) }, failure)
    } finally {
      isRunning = false
    }
  }
}
