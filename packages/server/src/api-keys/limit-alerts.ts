import { KeywayError, type RateLimitState } from '../errors.ts'
import { quotasOf, REQUEST_WINDOWS, type RequestWindow } from '../limits/limit.ts'
import type { KeyLimiter, LimitedKey } from '../limits/limits.ts'
import type { KeyAlerts, LimitAlert } from './key-alerts.ts'

/**
 * Wraps a limiter so that it also notes when a key passes 80 or 100 % of a limit. A key below 80 % costs almost
 * nothing, and the wrapper never writes to the database.
 */
export function alertingLimiter(limiter: KeyLimiter, alerts: Pick<KeyAlerts, 'noteLimit'>): KeyLimiter {
  return {
    ...limiter,
    take(key) {
      try {
        const states = limiter.take(key)
        if (states === null) return null
        if (Array.isArray(states)) return noteStates(key, states)
        return states.then(
          states => noteStates(key, states),
          error => noteRefusal(key, error),
        )
      } catch (error) {
        return noteRefusal(key, error)
      }
    },
    async consume(key, count) {
      const remaining = await limiter.consume(key, count).catch(error => noteRefusal(key, error))
      noteStates(key, remaining.requests)
      if (remaining.quota !== null) noteQuota(key, remaining.quota)
      return remaining
    },
  }

  function noteStates(key: LimitedKey, states: RateLimitState[]): RateLimitState[] {
    for (const { name, limit, remaining } of states) {
      if (remaining > limit / 5) continue
      const per = REQUEST_WINDOWS.find(window => window === name)
      // A state whose name is not a request window belongs to a limit of the person, not of the key.
      if (per) noteRequests(key, per, limit, remaining)
    }
    return states
  }

  function noteRequests(key: LimitedKey, per: RequestWindow, allowed: number, remaining: number): void {
    alerts.noteLimit(key, { limit: 'requests', per, ...usageOf(allowed, remaining) })
  }

  /** @param left null if the quota refused a request for more calls than were left */
  function noteQuota(key: LimitedKey, left: number | null): void {
    for (const { granted, refill } of quotasOf(key)) {
      const allowed = Math.max(granted, refill?.amount ?? 0)
      if (left !== null && left > allowed / 5) continue
      const usage = left === null ? { percent: 100 as const, allowed } : usageOf(allowed, left)
      alerts.noteLimit(key, { limit: 'quota', per: refill?.every ?? 'total', ...usage })
    }
  }

  function noteRefusal(key: LimitedKey, error: unknown): never {
    if (error instanceof KeywayError) {
      noteStates(key, [...(error.extras.limits ?? [])])
      if (error.code === 'quota_exhausted') noteQuota(key, null)
    }
    throw error
  }
}

function usageOf(allowed: number, left: number): Pick<LimitAlert, 'percent' | 'allowed' | 'used'> {
  return { percent: left < 1 ? 100 : 80, allowed, used: Math.max(0, allowed - left) }
}
