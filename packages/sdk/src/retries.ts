import { fullJitter } from './backoff.ts'
import { KeywayError } from './errors.ts'
import type { Reconnect } from './stop-reasons.ts'

/** Jitter, so that not all agents reconnect to a restarted service at once. */
export const RESTART_JITTER_MS = 1_000
/** A connection that lasted this long resets the back-off. */
const STABLE_AFTER_MS = 5_000

/** How long to wait before the next attempt: at once after a planned end, longer after every failure. */
export class Retries {
  #failures = 0

  /** Milliseconds. `why` may be an error with `retryAfter`. */
  next(reconnect: Reconnect, why: unknown, random: number): number {
    const attempt = this.#failures++
    if (attempt === 0 && reconnect !== 'backoff') return random * RESTART_JITTER_MS
    const asked = why instanceof KeywayError ? (why.retryAfter ?? 0) * 1000 : 0
    return asked + fullJitter(attempt, random)
  }

  /** Called when a connection ends that was ready for `ms` milliseconds. */
  afterConnectionOf(ms: number): void {
    if (ms >= STABLE_AFTER_MS) this.#failures = 0
  }
}
