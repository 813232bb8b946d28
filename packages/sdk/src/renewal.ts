import { type AgentTokenSource, lifetimeSeconds } from './agent-token-source.ts'
import { fullJitter } from './backoff.ts'
import type { SdkClock } from './clock.ts'
import { KeywayError } from './errors.ts'

export interface RenewalOptions {
  tokens: AgentTokenSource
  clock: SdkClock
  present(token: string): void
  /** Stops the agent if the error is final, and returns whether it did. */
  stopIfFinal(error: unknown): boolean
}

/**
 * Fraction of the lifetime after which a token is renewed at the latest. A random part of at most JITTER_SHARE is
 * subtracted, so that agents do not renew simultaneously.
 */
const RENEW_AT_SHARE = 0.8
const JITTER_SHARE = 0.1
/** Minimum interval between renewals, since a key that is about to expire yields ever shorter-lived tokens. */
const MIN_INTERVAL_MS = 5_000
/** If the hub does not answer a renewal within this time, the agent renews again. */
const ANSWER_DEADLINE_MS = 10_000

/** Renews one connection's token in place, before the token expires. */
export class Renewal {
  #options: RenewalOptions
  #cancelTimer = () => {}
  #stopped = false
  #failures = 0
  #unanswered = false
  #triedAt = Number.NEGATIVE_INFINITY
  /** Until when a refused exchange must not be repeated, by its `Retry-After`. */
  #refusedUntil = Number.NEGATIVE_INFINITY

  constructor(options: RenewalOptions) {
    this.#options = options
  }

  /** @param expiresIn the remaining lifetime of the current token in seconds, as the hub reported it */
  schedule(expiresIn: unknown): void {
    const { clock } = this.#options
    const share = RENEW_AT_SHARE - JITTER_SHARE * clock.random()
    this.#renewAfter(Math.max(lifetimeSeconds(expiresIn) * 1000 * share, this.#remainingPauseMs()))
  }

  /** Called when the hub has accepted the new token. */
  accepted(expiresIn: unknown): void {
    this.#failures = 0
    this.#unanswered = false
    this.schedule(expiresIn)
  }

  /** Called when the hub has refused a frame. If that was the renewal, the old token stays in use until it expires. */
  refused(): void {
    if (!this.#unanswered) return
    this.#unanswered = false
    this.#options.tokens.forget()
    this.#retry()
  }

  /** Called when the hub has sent `token_expiring`. Renews as soon as MIN_INTERVAL_MS and a `Retry-After` permit. */
  expiring(): void {
    this.#renewAfter(this.#remainingPauseMs())
  }

  stop(): void {
    this.#stopped = true
    this.#cancelTimer()
  }

  #remainingPauseMs(): number {
    const earliestAt = Math.max(this.#triedAt + MIN_INTERVAL_MS, this.#refusedUntil)
    return Math.max(0, earliestAt - this.#options.clock.now())
  }

  #renewAfter(ms: number): void {
    this.#cancelTimer()
    if (!this.#stopped) this.#cancelTimer = this.#options.clock.after(ms, () => this.#renew())
  }

  #renew(): void {
    this.#triedAt = this.#options.clock.now()
    this.#options.tokens.fresh().then(
      token => {
        if (this.#stopped) return
        this.#options.present(token)
        this.#unanswered = true
        this.#renewAfter(ANSWER_DEADLINE_MS)
      },
      error => {
        if (!this.#stopped && !this.#options.stopIfFinal(error)) this.#retry(error)
      },
    )
  }

  #retry(error?: unknown): void {
    const { clock } = this.#options
    const retryAfterMs = error instanceof KeywayError ? (error.retryAfter ?? 0) * 1000 : 0
    this.#refusedUntil = clock.now() + retryAfterMs
    this.#renewAfter(retryAfterMs + Math.max(1000, fullJitter(this.#failures++, clock.random())))
  }
}
