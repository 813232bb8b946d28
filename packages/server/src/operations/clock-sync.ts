import {
  type ClockReference,
  type Instant,
  MINUTE,
  SECOND,
  STEP_THRESHOLD,
  type SynchronizedClock,
} from '../clock.ts'
import type { Log } from '../log.ts'

/** Minimum interval between log lines about steps of the reference clock. */
const LOG_INTERVAL = MINUTE

export interface ClockSync {
  /** Synchronizes once. @throws KeywayError `unavailable` if the reference cannot be read */
  run(): Promise<void>
}

/** Keeps the service's clock synchronized with its reference clock, and logs when somebody stepped the reference. */
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
  let previousOffset = 0
  let hasUnreportedStep = false
  let nextLogAt = 0

  return { run }

  async function run(): Promise<void> {
    await clock.synchronize(readClock)
    const { remainingOffset } = clock
    const now = clock.now()
    if (Math.abs(remainingOffset - previousOffset) >= STEP_THRESHOLD) hasUnreportedStep = true
    previousOffset = remainingOffset
    if (!hasUnreportedStep || now < nextLogAt) return
    hasUnreportedStep = false
    nextLogAt = now + LOG_INTERVAL
    const problem = clockProblem(remainingOffset, reference)
    if (problem) log.warn({ problem, step_ms: remainingOffset }, 'a clock was stepped')
  }
}

/**
 * Describes a step of the reference clock, or returns null if there was none.
 *
 * @param remainingOffset reference minus the service's clock, in milliseconds (`SynchronizedClock.remainingOffset`)
 */
export function clockProblem(remainingOffset: number, reference: ClockReference): string | null {
  if (Math.abs(remainingOffset) < STEP_THRESHOLD) return null
  const distance = `${Math.round(Math.abs(remainingOffset) / SECOND)} s ${remainingOffset > 0 ? 'ahead of' : 'behind'} the service's`
  return reference === 'system'
    ? `the system's clock was stepped and is ${distance}, which ignores the step; a restart adopts the system's time`
    : `the database's clock was stepped and is ${distance}, which approaches it at half speed`
}
