import type { Clock, Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { forSite, type SendWindow, WINDOW_LENGTHS, type WindowName } from '../magic-links/send-limits.ts'
import { type Caller, siteOf } from '../network.ts'
import { PROBLEMS } from '../problems.ts'

/** Networks remembered at most; the one that failed longest ago is forgotten first. */
export const MAX_NETWORKS = 10_000
/** The same for IPv6 sites, each of which has sixteen times as many failures to remember. */
export const MAX_SITES = 1000

export interface FailureLimits {
  /**
   * Counts a failed verify, exchange or refresh of this client's network. Once a window is full the refusal becomes
   * `rate_limited`, which tells a guesser nothing more.
   *
   * Only failing answers are ever replaced. A request that succeeds is neither counted nor held up, so
   * nobody is locked out by what others behind the same address get wrong. The counts are this node's own and
   * live in memory: the limit slows guessing down, it protects nothing that 190 random bits do not.
   */
  refusal(caller: FailingCaller, error: KeywayError): KeywayError
  /**
   * For what is short enough to be guessed, a typed code: a full window refuses it before it is checked.
   *
   * @throws KeywayError `rate_limited`
   */
  assertMayGuess(caller: FailingCaller): void
}

export type FailingCaller = Pick<Caller, 'address' | 'network'>

export function createFailureLimits({
  clock,
  windows,
}: {
  clock: Clock
  windows: readonly SendWindow[]
}): FailureLimits {
  const networks = createCounters(windows, MAX_NETWORKS)
  const sites = createCounters(forSite(windows), MAX_SITES)

  return {
    refusal(caller, error) {
      if (!PROBLEMS[error.code].isGuess) return error
      const now = clock.now()
      const full = fullOf(caller, now)
      // A refused one is not counted: trying on never makes the wait longer.
      if (full) return rateLimited(full)
      for (const [counters, name] of countersOf(caller)) counters.count(name, now)
      return error
    },
    assertMayGuess(caller) {
      const full = fullOf(caller, clock.now())
      if (full) throw rateLimited(full)
    },
  }

  function fullOf(caller: FailingCaller, now: Instant): Wait | null {
    const waits = countersOf(caller).map(([counters, name]) => counters.longestWait(name, now))
    return waits.reduce(longer, null)
  }

  function countersOf({ address, network }: FailingCaller): [Counters, string][] {
    const site = siteOf(address)
    return site === null
      ? [[networks, network]]
      : [
          [networks, network],
          [sites, site],
        ]
  }
}

interface Counters {
  longestWait(name: string, now: Instant): Wait | null
  count(name: string, now: Instant): void
}

/** The recent failures of each name, of at most `max` names. */
function createCounters(windows: readonly SendWindow[], max: number): Counters {
  const failures = new Map<string, Instant[]>()
  const longest = Math.max(0, ...windows.map(({ window }) => WINDOW_LENGTHS[window]))
  const most = Math.max(0, ...windows.map(({ limit }) => limit))

  return {
    longestWait(name, now) {
      const recent = failures.get(name) ?? []
      const waits = windows.map(({ window, limit }): Wait | null => {
        const oldest = recent.at(-limit)
        const milliseconds = oldest === undefined ? 0 : oldest + WINDOW_LENGTHS[window] - now
        return milliseconds > 0 ? { milliseconds, window } : null
      })
      return waits.reduce(longer, null)
    },
    count(name, now) {
      const recent = (failures.get(name) ?? []).filter(instant => instant > now - longest)
      recent.push(now)
      failures.delete(name)
      failures.set(name, recent.slice(-most))
      if (failures.size > max) failures.delete(failures.keys().next().value!)
    },
  }
}

interface Wait {
  milliseconds: number
  window: WindowName
}

function longer(one: Wait | null, other: Wait | null): Wait | null {
  if (!one || !other) return one ?? other
  return other.milliseconds > one.milliseconds ? other : one
}

function rateLimited({ milliseconds, window }: Wait): KeywayError {
  const retryAfter = Math.max(1, Math.ceil(milliseconds / 1000))
  const detail = `Too many failed attempts from this network. Try again in ${retryAfter} seconds.`
  return new KeywayError('rate_limited', detail, { retryAfter, window })
}
