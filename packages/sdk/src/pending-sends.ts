import type { SdkClock } from './clock.ts'
import { KeywayError } from './errors.ts'
import type { HubConnection } from './hub-connection.ts'
import { type AgentFrame, type FrameErrorCode, HUB_MAX_FRAME_BYTES } from './protocol.ts'

/** Maximum number of unacknowledged sends; more are refused at once. */
export const PENDING_MAX_MESSAGES = 256
export const PENDING_MAX_BYTES = 1024 * 1024

/**
 * Maximum number of sends in flight: a full queue that is sent again after a reconnection must not exceed the hub's
 * rate limit of frames.
 */
const MAX_IN_FLIGHT = 64

/** Bytes reserved for the sequence number that is added to a frame. */
const SEQ_BYTES = 24
/** Pause after the hub answered `rate_limited`. */
const RATE_LIMIT_PAUSE_MS = 1_000

/** The hub's acknowledgement of a message. */
export interface Delivery {
  /** Number of open connections to which the message was written. */
  delivered: number
  /**
   * Number of broken connections that get the message if they resume in time; not included in `delivered`. Absent if
   * the hub cannot resume connections.
   */
  held?: number
}

export type OutgoingMessage = Omit<SendFrame, 'type'>
type SendFrame = Extract<AgentFrame, { type: 'send' }>

interface PendingSend {
  frame: SendFrame
  bytes: number
  sentOn: HubConnection | undefined
  /** The hub session (`#session`) to which the number `frame.seq` belongs. */
  numberedIn: object | undefined
  isAborted: boolean
  removeAbortListener(): void
  resolve(delivery: Delivery): void
  reject(error: unknown): void
}

/** Queue of unacknowledged sends, in order. */
export class PendingSends {
  #clock: SdkClock
  #pending = new Map<string, PendingSend>()
  #bytes = 0
  #connection: HubConnection | undefined
  /** The hub session (resumption.ts) within which sends are numbered; undefined if the hub cannot resume. */
  #session: object | undefined
  #lastSeq = 0
  #cancelPause: (() => void) | undefined

  constructor(clock: SdkClock) {
    this.#clock = clock
  }

  /**
   * Resolves when the hub acknowledges the message; rejects if the hub refuses it, the message is too large, the signal
   * aborts, the queue is full, or the agent stops.
   */
  add(message: OutgoingMessage, signal?: AbortSignal): Promise<Delivery> {
    const { id } = message
    const frame = { type: 'send', ...message } as const
    const bytes = new TextEncoder().encode(JSON.stringify(frame)).length + SEQ_BYTES
    if (bytes > HUB_MAX_FRAME_BYTES) {
      const message = `The frame has ${bytes} bytes; the hub takes ${HUB_MAX_FRAME_BYTES}. Split the data.`
      return Promise.reject(new KeywayError('too_large', message))
    }
    if (this.#pending.size >= PENDING_MAX_MESSAGES || this.#bytes + bytes > PENDING_MAX_BYTES) {
      const message = `${this.#pending.size} messages wait for their acknowledgement. Await send() before sending more.`
      return Promise.reject(new KeywayError('queue_full', message, { retryable: true }))
    }
    return new Promise((resolve, reject) => {
      const abort = () => this.#abort(id, signal?.reason)
      const removeAbortListener = () => signal?.removeEventListener('abort', abort)
      const state = { sentOn: undefined, numberedIn: undefined, isAborted: false }
      this.#pending.set(id, { frame, bytes, ...state, removeAbortListener, resolve, reject })
      this.#bytes += bytes
      if (signal?.aborted) abort()
      else signal?.addEventListener('abort', abort, { once: true })
      this.#flush()
    })
  }

  /** Sends over this connection from now on, with sequence numbers if it belongs to a hub session. */
  sendOver(connection: HubConnection, session: object | undefined): void {
    this.#connection = connection
    if (session && session === this.#session) this.#markAllUnsent()
    else this.#lastSeq = 0
    this.#session = session
    this.#flush()
  }

  /** Sends the unacknowledged messages of a lost connection again, since they may or may not have arrived. */
  lost(connection: HubConnection): void {
    if (this.#connection === connection) this.#connection = undefined
    for (const pending of this.#pending.values()) {
      if (pending.sentOn === connection) pending.sentOn = undefined
    }
    this.#flush()
  }

  /** If the hub refused a send temporarily, repeats it after a pause, in which nothing is sent; else rejects it. */
  failed(id: string, code: FrameErrorCode, detail: string): void {
    const isMalformed = code === 'unknown_type' || code === 'invalid_frame'
    if (code === 'rate_limited' || code === 'out_of_order') this.#postpone(id)
    else this.rejectSend(id, new KeywayError(isMalformed ? 'refused' : code, detail))
  }

  #postpone(id: string): void {
    const pending = this.#pending.get(id)
    if (pending) pending.sentOn = undefined
    this.#cancelPause ??= this.#clock.after(RATE_LIMIT_PAUSE_MS, () => {
      this.#cancelPause = undefined
      this.#flush()
    })
  }

  acknowledge(id: string, delivered: number, held?: number): void {
    this.#remove(id)?.resolve({ delivered, ...(held === undefined ? {} : { held }) })
    this.#flush()
  }

  rejectSend(id: string, error: unknown): void {
    this.#remove(id)?.reject(error)
    this.#flush()
  }

  /**
   * Rejects the send. If it has a sequence number of the current session, its frame stays queued: the hub may have
   * accepted it, and a gap in the numbers would block later sends.
   */
  #abort(id: string, reason: unknown): void {
    const pending = this.#pending.get(id)
    if (pending && this.#session && pending.numberedIn === this.#session) {
      pending.isAborted = true
      pending.reject(reason)
    } else this.rejectSend(id, reason)
  }

  /**
   * Makes the next `#flush` send everything again, after the hub session was resumed. The hub recognises by the
   * sequence numbers what it has already accepted.
   */
  #markAllUnsent(): void {
    for (const pending of this.#pending.values()) pending.sentOn = undefined
  }

  rejectAll(error: KeywayError): void {
    this.#cancelPause?.()
    this.#connection = undefined
    for (const id of [...this.#pending.keys()]) this.rejectSend(id, error)
  }

  /**
   * Sends queued messages, at most `MAX_IN_FLIGHT`. Messages in flight on the previous connection block later ones
   * until they are acknowledged or lost, since order is not preserved across two nodes.
   */
  #flush(): void {
    const connection = this.#connection
    if (!connection || this.#cancelPause) return
    let inFlight = 0
    for (const [id, pending] of this.#pending) {
      if (pending.isAborted && pending.numberedIn !== this.#session) {
        this.#remove(id)
        continue
      }
      if (inFlight++ >= MAX_IN_FLIGHT) return
      if (pending.sentOn === connection) continue
      if (pending.sentOn) return
      this.#assignSeq(pending)
      if (!connection.send(pending.frame)) return
      pending.sentOn = connection
    }
  }

  /** A message keeps its sequence number for the whole hub session, so that the hub accepts it once. */
  #assignSeq(pending: PendingSend): void {
    if (pending.numberedIn === this.#session) return
    pending.numberedIn = this.#session
    const { seq, ...frame } = pending.frame
    pending.frame = this.#session ? { ...frame, seq: ++this.#lastSeq } : frame
  }

  #remove(id: string): PendingSend | undefined {
    const pending = this.#pending.get(id)
    if (!pending) return undefined
    this.#pending.delete(id)
    this.#bytes -= pending.bytes
    pending.removeAbortListener()
    return pending
  }
}
