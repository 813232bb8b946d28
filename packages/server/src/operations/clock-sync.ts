import {
  type ClockReference,
  type Instant,
  MINUTE,
  SECOND,
  STEP_THRESHOLD,
  type SynchronizedClock,
} from '../clock.ts'
import type { Log } from '../log.ts'

/**
 * The system's clock costs a read of this process to compare with, and a suspension is noticed no sooner; the
 * database's costs three round trips.
 */
const INTERVALS: Record<ClockReference, number> = { system: SECOND, database: MINUTE }
/** A reference that is stepped again and again is logged no more often. */
const LOG_INTERVAL = MINUTE

export interface ClockSync {
  /** One comparison now. Never rejects. */
  run(): Promise<void>
  /** Compares at an interval until the returned function is called. */
  start(): () => void
}

/** Keeps the service's clock on its reference, and logs each step of the reference once. */
export function createClockSync({
  clock,
  reference,
  readClock,
  log,
}: {
  clock: SynchronizedClock
  reference: ClockReference
  readClock(): Promise<Instant>
  log: Log
}): ClockSync {
  let reported = 0
  let mayLogAt = 0

  return {
    run,
    start() {
      const timer = setInterval(run, INTERVALS[reference])
      return () => clearInterval(timer)
    },
  }

  async function run(): Promise<void> {
    try {
      await clock.synchronize(readClock)
    } catch (error) {
      if (mayLog()) log.warn({ error: String(error) }, 'the database clock could not be read')
      return
    }
    const { behind } = clock
    if (Math.abs(behind - reported) < STEP_THRESHOLD || !mayLog()) return
    if (Math.abs(behind) >= STEP_THRESHOLD)
      log.warn({ step_ms: behind }, clockProblem(behind, reference) ?? '')
    reported = behind
  }

  function mayLog(): boolean {
    const now = clock.now()
    if (now < mayLogAt) return false
    mayLogAt = now + LOG_INTERVAL
    return true
  }
}

/** What an operator must know of a clock that is `behind` its reference by so many milliseconds; null: nothing. */
export function clockProblem(behind: number, reference: ClockReference): string | null {
  if (Math.abs(behind) < STEP_THRESHOLD) return null
  const distance = `${Math.round(Math.abs(behind) / SECOND)} s ${behind > 0 ? 'ahead of' : 'behind'} the service's`
  return reference === 'system'
    ? `the system's clock was stepped and is ${distance}, which goes on unchanged; a restart takes the system's over`
    : `the database's clock was stepped and is ${distance}, which approaches it at half speed`
}
