import { type Instant, SECOND } from '../clock.ts'

/** After this long without a successful poll, a node can no longer confirm that keys are active. */
const STALE_AFTER_MS = 10 * SECOND

/**
 * Records whether this node polls the database successfully, and so would notice a revocation. If not, it closes
 * existing and new connections with 1013 `try_again_later`.
 */
export class DatabaseFreshness {
  #lastPollAt: Instant | null = null

  /** Called after each successful poll. @param at the instant at which the poll began */
  polled(at: Instant): void {
    this.#lastPollAt = at
  }

  isFresh(now: Instant): boolean {
    return this.#lastPollAt !== null && now - this.#lastPollAt < STALE_AFTER_MS
  }

  get lastPollAt(): Instant | null {
    return this.#lastPollAt
  }
}
