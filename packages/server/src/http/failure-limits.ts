import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { createKeyedWindows, type KeyedWindows } from '../keyed-windows.ts'
import { siteWindows } from '../magic-links/send-limits.ts'
import { type Caller, siteOf } from '../network.ts'
import { PROBLEMS } from '../problems.ts'
import { longestOf, type RateWindow, type Wait } from '../rate-windows.ts'

const MAX_REMEMBERED_NETWORKS = 20_000
/** A site is an IPv6 /48, the largest prefix that one customer usually gets. */
const MAX_REMEMBERED_SITES = 2000

export interface FailureLimits {
  /**
   * Counts an error that may be a failed guess of a credential (`isGuess`), by the client's network and site, and
   * returns the error to answer with: the given one, or `rate_limited` once a window is full, so that a guesser no
   * longer learns why the request failed. Any other error is returned without being counted.
   *
   * Only failures are counted and limited, so clients behind a shared address cannot lock each other out. The counts
   * are per node and in memory, so the limit only slows down guessing. What prevents guessing are the 190 random bits
   * of a credential.
   */
  refusal(caller: FailingCaller, error: KeywayError): KeywayError
  /**
   * Must be called before a typed code is checked, since a code is short enough to be guessed.
   *
   * @throws KeywayError `rate_limited` if a window is full
   */
  assertMayGuess(caller: FailingCaller): void
}

export type FailingCaller = Pick<Caller, 'address' | 'network'>

export function createFailureLimits({
  clock,
  windows,
}: {
  clock: Clock
  windows: readonly RateWindow[]
}): FailureLimits {
  const networkCounts = createKeyedWindows({ clock, windows, maxNames: MAX_REMEMBERED_NETWORKS })
  const siteCounts = createKeyedWindows({
    clock,
    windows: siteWindows(windows),
    maxNames: MAX_REMEMBERED_SITES,
  })

  return {
    refusal(caller, error) {
      if (!(error.extras.isGuess ?? PROBLEMS[error.code].isGuess)) return error
      const wait = waitOf(caller)
      // Failures of a caller who must wait already are not counted, so that retrying does not prolong the wait.
      if (wait) return rateLimited(wait)
      for (const [counts, name] of windowsAndNamesOf(caller)) counts.count(name)
      return error
    },
    assertMayGuess(caller) {
      const wait = waitOf(caller)
      if (wait) throw rateLimited(wait)
    },
  }

  function waitOf(caller: FailingCaller): Wait | null {
    return longestOf(windowsAndNamesOf(caller).map(([counts, name]) => counts.wait(name)))
  }

  function windowsAndNamesOf({ address, network }: FailingCaller): [KeyedWindows, string][] {
    const site = siteOf(address)
    return site === null
      ? [[networkCounts, network]]
      : [
          [networkCounts, network],
          [siteCounts, site],
        ]
  }
}

function rateLimited({ retryAfter, window }: Wait): KeywayError {
  const detail = `Too many failed attempts from this network. Try again in ${retryAfter} seconds.`
  return new KeywayError('rate_limited', detail, { retryAfter, window })
}
