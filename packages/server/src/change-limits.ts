import type { Clock } from './clock.ts'
import { KeywayError } from './errors.ts'
import { createKeyedWindows } from './keyed-windows.ts'
import type { RateWindow, Wait } from './rate-windows.ts'

/**
 * Changes of one account on one node. Each leaves rows and a line of the journal for as long as a year, and some are
 * read by every node with each sweep: far more than a person or a script needs, and far less than fills a disk.
 */
export const CHANGE_LIMITS: readonly RateWindow[] = [
  { window: 'minute', limit: 120 },
  { window: 'day', limit: 2000 },
]
const MAX_REMEMBERED_ACCOUNTS = 50_000

export interface ChangeLimits {
  /**
   * Counts a change that leaves something behind. Whatever ends or withdraws something is never held up by it.
   *
   * @throws KeywayError `rate_limited`
   */
  take(by: string): void
}

export function createChangeLimits({ clock }: { clock: Pick<Clock, 'now'> }): ChangeLimits {
  const changes = createKeyedWindows({ clock, windows: CHANGE_LIMITS, maxNames: MAX_REMEMBERED_ACCOUNTS })
  return {
    take(by) {
      const wait = changes.take(by)
      if (wait) throw rateLimited(wait)
    },
  }
}

function rateLimited({ retryAfter, window }: Wait): KeywayError {
  const detail = `Too many changes of this account within this ${window}. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
  return new KeywayError('rate_limited', detail, { retryAfter, window })
}
