import type { ErrorCode } from '@keyway/sdk/protocol'
import type { Clock, Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { type SendWindow, WINDOW_LENGTHS, type WindowName } from '../magic-links/send-limits.ts'

/** Networks remembered at most; the one that failed longest ago is forgotten first. */
export const MAX_NETWORKS = 10_000

/** Refusals of a guessed credential. A malformed request is no guess. */
const GUESSES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'magic_link_invalid',
  'magic_link_expired',
  'magic_link_used',
  'invalid_api_key',
  'api_key_revoked',
  'api_key_expired',
  'invalid_refresh_token',
  'refresh_token_reused',
])

export interface FailureLimits {
  /**
   * Counts a failed verify, exchange or refresh of this network. Once a window is full the refusal becomes
   * `rate_limited`, which tells a guesser nothing more.
   *
   * Only failing answers are ever replaced. A request that succeeds is neither counted nor looked at, so
   * nobody is locked out by what others behind the same address get wrong. The counts are this node's own and
   * live in memory: the limit slows guessing down, it protects nothing that 190 random bits do not.
   */
  refusal(network: string, error: KeywayError): KeywayError
}

export function createFailureLimits({
  clock,
  windows,
}: {
  clock: Clock
  windows: readonly SendWindow[]
}): FailureLimits {
  const failures = new Map<string, Instant[]>()
  const longest = Math.max(0, ...windows.map(({ window }) => WINDOW_LENGTHS[window]))

  return {
    refusal(network, error) {
      if (!GUESSES.has(error.code)) return error
      const now = clock.now()
      const recent = (failures.get(network) ?? []).filter(instant => instant > now - longest)
      const full = longestWait(recent, now)
      // A refused one is not counted: trying on never makes the wait longer.
      if (!full) recent.push(now)
      remember(network, recent)
      return full ? rateLimited(full) : error
    },
  }

  function longestWait(recent: readonly Instant[], now: Instant): Wait | null {
    let wait: Wait | null = null
    for (const { window, limit } of windows) {
      const length = WINDOW_LENGTHS[window]
      const oldest = recent.filter(instant => instant > now - length).at(-limit)
      if (oldest === undefined) continue
      const milliseconds = oldest + length - now
      if (!wait || milliseconds > wait.milliseconds) wait = { milliseconds, window }
    }
    return wait
  }

  function remember(network: string, recent: Instant[]): void {
    failures.delete(network)
    failures.set(network, recent)
    if (failures.size > MAX_NETWORKS) failures.delete(failures.keys().next().value!)
  }
}

interface Wait {
  milliseconds: number
  window: WindowName
}

function rateLimited({ milliseconds, window }: Wait): KeywayError {
  const retryAfter = Math.max(1, Math.ceil(milliseconds / 1000))
  const detail = `Too many failed attempts from this network. Try again in ${retryAfter} seconds.`
  return new KeywayError('rate_limited', detail, { retryAfter, window })
}
