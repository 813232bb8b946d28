import { KeywayError, type RateLimitState } from '../errors.ts'
import { quotasOf, REQUEST_WINDOWS, type RequestWindow } from '../limits/limit.ts'
import type { KeyLimiter, LeftOfLimits, LimitedKey } from '../limits/limits.ts'
import type { KeyAlerts } from './key-alerts.ts'

/**
 * Wraps a limiter so that it also records when a key passes 80 or 100 % of a limit. Below that it costs nothing, and
 * never a write.
 */
export function alertingLimiter(limiter: KeyLimiter, alerts: Pick<KeyAlerts, 'noteLimit'>): KeyLimiter {
  return {
    ...limiter,
    take(key) {
      try {
        const states = limiter.take(key)
        if (states === null) return null
        if (Array.isArray(states)) return noted(key, states)
        return states.then(
          known => noted(key, known),
          error => refused(key, error),
        )
      } catch (error) {
        return refused(key, error)
      }
    },
    async consume(key, count) {
      const left = await limiter.consume(key, count).catch(error => refused(key, error))
      noted(key, left.requests)
      noteQuota(key, left)
      return left
    },
  }

  function noted(key: LimitedKey, states: RateLimitState[]): RateLimitState[] {
    for (const { name, limit, remaining } of states) {
      if (remaining > limit / 5) continue
      const per = REQUEST_WINDOWS.find(window => window === name)
      // States without a window of that name are limits of the person, not of the key.
      if (per) noteRequests(key, per, remaining < 1 ? 100 : 80)
    }
    return states
  }

  function noteRequests(key: LimitedKey, per: RequestWindow, percent: 80 | 100): void {
    alerts.noteLimit(key, { limit: 'requests', per, percent })
  }

  function noteQuota(key: LimitedKey, { quota: left }: LeftOfLimits): void {
    if (left === null) return
    for (const { granted, refill } of quotasOf(key)) {
      if (left > Math.max(granted, refill?.amount ?? 0) / 5) continue
      alerts.noteLimit(key, {
        limit: 'quota',
        per: refill?.every ?? 'total',
        percent: left < 1 ? 100 : 80,
      })
    }
  }

  function refused(key: LimitedKey, error: unknown): never {
    if (error instanceof KeywayError) {
      noted(key, [...(error.extras.limits ?? [])])
      if (error.code === 'quota_exhausted') noteQuota(key, { requests: [], quota: 0 })
    }
    throw error
  }
}
