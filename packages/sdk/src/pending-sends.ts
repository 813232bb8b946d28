import type { SdkClock } from './clock.ts'
import { KeywayError } from './errors.ts'
import type { HubConnection } from './hub-connection.ts'
import { type AgentFrame, HUB_MAX_FRAME_BYTES, type Json } from './protocol.ts'

/** What waits for a connection or an acknowledgement at most; more is refused at once. */
export const PENDING_MAX_MESSAGES = 256
export const PENDING_MAX_BYTES = 1024 * 1024

/** So many are under way at once: a full queue must not run into the hub's limit of frames at every reconnection. */
const WINDOW = 64

/** How long nothing is sent after the hub said that it was too much. */
const RATE_LIMIT_PAUSE_MS = 1_000

/** The hub's acknowledgement: written to so many open connections. */
export interface Delivery {
  delivered: number
}

interface Pending {
  frame: Extract<AgentFrame, { type: 'send' }>
  bytes: number
  sentOn: HubConnection | undefined
  settle(): void
  resolve(delivery: Delivery): void
  reject(error: unknown): void
}

/** Sends that are not acknowledged yet, in their order, on their way over the connection in use. */
export class PendingSends {
  #clock: SdkClock
  #pending = new Map<string, Pending>()
  #bytes = 0
  #connection: HubConnection | undefined
  #cancelPause: (() => void) | undefined

  constructor(clock: SdkClock) {
    this.#clock = clock
  }

  /** Resolves when the hub acknowledged it; rejects when it is refused, given up or over the bound. */
  add(id: string, to: string, data: Json, signal?: AbortSignal): Promise<Delivery> {
    const frame = { type: 'send', id, to, data } as const
    const bytes = new TextEncoder().encode(JSON.stringify(frame)).length
    if (bytes > HUB_MAX_FRAME_BYTES) {
      const message = `The frame has ${bytes} bytes; the hub takes ${HUB_MAX_FRAME_BYTES}. Split the data.`
      return Promise.reject(new KeywayError('too_large', message))
    }
    if (this.#pending.size >= PENDING_MAX_MESSAGES || this.#bytes + bytes > PENDING_MAX_BYTES) {
      const message = `${this.#pending.size} messages wait for their acknowledgement. Await send() before sending more.`
      return Promise.reject(new KeywayError('queue_full', message, { retryable: true }))
    }
    return new Promise((resolve, reject) => {
      const abort = () => this.refuse(id, signal?.reason)
      const settle = () => signal?.removeEventListener('abort', abort)
      this.#pending.set(id, { frame, bytes, sentOn: undefined, settle, resolve, reject })
      this.#bytes += bytes
      if (signal?.aborted) abort()
      else signal?.addEventListener('abort', abort, { once: true })
      this.#flush()
    })
  }

  /** From now on over this connection. */
  use(connection: HubConnection): void {
    this.#connection = connection
    this.#flush()
  }

  /** That connection is gone: what it had not acknowledged may or may not have arrived, and is sent again. */
  lost(connection: HubConnection): void {
    if (this.#connection === connection) this.#connection = undefined
    for (const pending of this.#pending.values()) {
      if (pending.sentOn === connection) pending.sentOn = undefined
    }
    this.#flush()
  }

  /** The hub asked for patience with this one: it is sent again, and nothing before it, a second later. */
  postpone(id: string): void {
    const pending = this.#pending.get(id)
    if (pending) pending.sentOn = undefined
    this.#cancelPause ??= this.#clock.after(RATE_LIMIT_PAUSE_MS, () => {
      this.#cancelPause = undefined
      this.#flush()
    })
  }

  acknowledge(id: string, delivered: number): void {
    this.#take(id)?.resolve({ delivered })
    this.#flush()
  }

  refuse(id: string, error: unknown): void {
    this.#take(id)?.reject(error)
    this.#flush()
  }

  refuseAll(error: KeywayError): void {
    this.#cancelPause?.()
    this.#connection = undefined
    for (const id of [...this.#pending.keys()]) this.refuse(id, error)
  }

  /**
   * Sends what is not under way, as far as the window allows. What is under way over the connection before holds up
   * what comes after it, until it is acknowledged there or lost: two nodes would not keep them in order.
   */
  #flush(): void {
    const connection = this.#connection
    if (!connection || this.#cancelPause) return
    let underWay = 0
    for (const pending of this.#pending.values()) {
      if (underWay++ >= WINDOW) return
      if (pending.sentOn === connection) continue
      if (pending.sentOn) return
      if (!connection.send(pending.frame)) return
      pending.sentOn = connection
    }
  }

  #take(id: string): Pending | undefined {
    const pending = this.#pending.get(id)
    if (!pending) return undefined
    this.#pending.delete(id)
    this.#bytes -= pending.bytes
    pending.settle()
    return pending
  }
}
