import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { createKeyedWindows, type KeyedWindows } from '../keyed-windows.ts'
import { forSite } from '../magic-links/send-limits.ts'
import { type Caller, siteOf } from '../network.ts'
import { PROBLEMS } from '../problems.ts'
import { longestOf, type RateWindow, type Wait } from '../rate-windows.ts'

const MAX_REMEMBERED_NETWORKS = 20_000
const MAX_REMEMBERED_SITES = 2000

export interface FailureLimits {
  /**
   * Counts a failed verify, exchange or refresh of this client's network. Once a window is full the refusal becomes
   * `rate_limited`, which tells a guesser nothing more.
   *
   * Only failures are counted and limited, so clients behind a shared address cannot lock each other out. The counts
   * are per node and in memory: the limit slows down guessing, against which the 190 random bits of a credential
   * suffice.
   */
  refusal(caller: FailingCaller, error: KeywayError): KeywayError
  /**
   * To be called before a typed code is checked, which is short enough to be guessed.
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
  const networks = createKeyedWindows({ clock, windows, maxNames: MAX_REMEMBERED_NETWORKS })
  const sites = createKeyedWindows({ clock, windows: forSite(windows), maxNames: MAX_REMEMBERED_SITES })

  return {
    refusal(caller, error) {
      if (!(error.extras.isGuess ?? PROBLEMS[error.code].isGuess)) return error
      const full = waitOf(caller)
      // Limited failures are not counted, so that retrying does not prolong the wait.
      if (full) return rateLimited(full)
      for (const [counts, name] of countsOf(caller)) counts.take(name)
      return error
    },
    assertMayGuess(caller) {
      const full = waitOf(caller)
      if (full) throw rateLimited(full)
    },
  }

  function waitOf(caller: FailingCaller): Wait | null {
    return longestOf(countsOf(caller).map(([counts, name]) => counts.wait(name)))
  }

  function countsOf({ address, network }: FailingCaller): [KeyedWindows, string][] {
    const site = siteOf(address)
    return site === null
      ? [[networks, network]]
      : [
          [networks, network],
          [sites, site],
        ]
  }
}

function rateLimited({ retryAfter, window }: Wait): KeywayError {
  const detail = `Too many failed attempts from this network. Try again in ${retryAfter} seconds.`
  return new KeywayError('rate_limited', detail, { retryAfter, window })
}
