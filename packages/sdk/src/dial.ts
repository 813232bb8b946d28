import type { AgentTokenSource } from './agent-token-source.ts'
import type { SdkClock } from './clock.ts'
import type { HubConnection } from './hub-connection.ts'

/** Timeout of an attempt: exchange, handshake and `ready` together. */
const DIAL_TIMEOUT_MS = 10_000
/**
 * If the handshake has no response after this time, its connection is closed and another one opened, once. Node opens
 * WebSockets over pooled connections, so after a network interruption the first handshake may use a dead one.
 */
const SECOND_HANDSHAKE_AFTER_MS = 3_000

export interface DialOptions {
  tokens: Pick<AgentTokenSource, 'get'>
  clock: SdkClock
  open(token: string): HubConnection
  /** Called at most once, when the attempt fails; never after `finish` or `giveUp`. */
  onFailed(failure: unknown): void
}

/** One connection attempt: token, handshake, and `ready` within 10 s. */
export class Dial {
  #options: DialOptions
  #connection: HubConnection | undefined
  #ended = false
  #cancelTimers: (() => void)[] = []

  constructor(options: DialOptions) {
    this.#options = options
    this.#after(DIAL_TIMEOUT_MS, () => this.fail({ code: 1006, reason: 'no answer in time' }))
    options.tokens
      .get()
      .then(token => this.#open(token))
      .catch(error => this.fail(error))
  }

  owns(connection: HubConnection): boolean {
    return this.#connection === connection
  }

  /** Ends the attempt and leaves its connection open. */
  finish(): void {
    this.#ended = true
    for (const cancel of this.#cancelTimers) cancel()
  }

  giveUp(): void {
    this.finish()
    this.#connection?.close()
  }

  fail(failure: unknown): void {
    if (this.#ended) return
    this.giveUp()
    this.#options.onFailed(failure)
  }

  #open(token: string): void {
    if (this.#ended) return
    this.#connection = this.#options.open(token)
    this.#after(SECOND_HANDSHAKE_AFTER_MS, () => {
      if (this.#connection?.isOpen) return
      this.#connection?.close()
      this.#connection = this.#options.open(token)
    })
  }

  #after(ms: number, callback: () => void): void {
    this.#cancelTimers.push(this.#options.clock.after(ms, callback))
  }
}
