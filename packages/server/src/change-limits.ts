import type { Clock } from './clock.ts'
import { KeywayError } from './errors.ts'
import { createKeyedWindows } from './keyed-windows.ts'
import type { RateWindow, Wait } from './rate-windows.ts'

/**
 * How many changes (see `ChangeLimits.count`) one changer may make on one node. Each stores rows for up to a year, so
 * the limits are far above normal use and far below the rate that would fill a disk.
 */
export const CHANGE_LIMITS: readonly RateWindow[] = [
  { window: 'minute', limit: 120 },
  { window: 'day', limit: 2000 },
]
const MAX_REMEMBERED_CHANGERS = 50_000

export interface ChangeLimits {
  /**
   * Counts a change that creates or extends something. Endings and withdrawals are not limited.
   *
   * @param changer a kind and a user id, such as `person:<id>` for changes by the signed-in user, `key:<id>` for those
   *   by the user's keys, `code:<id>` for authorization codes. Each kind has a limit of its own, so that neither keys
   *   nor an app that requests codes can block the user on the web pages.
   * @throws KeywayError `rate_limited`
   */
  count(changer: string): void
}

export function createChangeLimits({ clock }: { clock: Pick<Clock, 'now'> }): ChangeLimits {
  const changeCounts = createKeyedWindows({
    clock,
    windows: CHANGE_LIMITS,
    maxNames: MAX_REMEMBERED_CHANGERS,
  })
  return {
    count(changer) {
      const wait = changeCounts.count(changer)
      if (wait) throw rateLimited(wait)
    },
  }
}

function rateLimited({ retryAfter, window }: Wait): KeywayError {
  const detail = `Too many changes of this account within this ${window}. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
  return new KeywayError('rate_limited', detail, { retryAfter, window })
}
