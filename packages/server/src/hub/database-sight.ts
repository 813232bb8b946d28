import { type Instant, SECOND } from '../clock.ts'

/** A node that had no successful look at the database for this long cannot say that its keys still stand. */
const BLIND_AFTER_MS = 10 * SECOND

/**
 * Whether this node would see a revocation. While it would not, it takes no new connections and closes the old ones
 * with 1013 `try_again_later`; a renewal waits for the database by itself.
 */
export class DatabaseSight {
  #lastLook: Instant | null = null

  /** A look that began at `at` succeeded. */
  looked(at: Instant): void {
    this.#lastLook = at
  }

  /** The last successful look is less than 10 s old. */
  canSee(now: Instant): boolean {
    return this.#lastLook !== null && now - this.#lastLook < BLIND_AFTER_MS
  }

  get lastLook(): Instant | null {
    return this.#lastLook
  }
}
