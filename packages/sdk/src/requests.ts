import type { SdkClock } from './clock.ts'
import { randomId } from './environment.ts'
import { KeywayError } from './errors.ts'
import type { MessageFrame } from './handover.ts'
import type { Delivery, OutgoingMessage } from './pending-sends.ts'
import { type Answer, type Json, REQUEST_ID_PREFIX } from './protocol.ts'

/** Maximum number of requests without an answer; more are refused at once. */
export const MAX_PENDING_REQUESTS = 1000
const DEFAULT_TIMEOUT_MS = 30_000
const MAX_TIMEOUT_MS = 86_400_000

export interface RequestOptions {
  /** Milliseconds until the request is rejected with `timeout`, at most a day; 30,000 unless given. */
  timeout?: number | undefined
  /** Rejects the request with the signal's reason. */
  signal?: AbortSignal | undefined
}

interface PendingRequest {
  resolve(result: Json): void
  reject(error: unknown): void
  /** Number of open and broken connections that get the request; null until the hub has acknowledged it. */
  receivers: number | null
  /** Connections that answered with an error. */
  refusedBy: Set<string>
  /** The error if all receivers refuse: the last one other than `no_handler`, if there is any. */
  refusal: KeywayError | undefined
}

type Send = (message: OutgoingMessage, signal: AbortSignal) => Promise<Delivery>

/** The requests of this agent that have no answer yet (docs/hub-protocol.md, section 3). */
export class Requests {
  readonly #clock: SdkClock
  readonly #send: Send
  readonly #pending = new Map<string, PendingRequest>()
  readonly #idPrefix = `${REQUEST_ID_PREFIX}${randomId()}-`
  #counter = 0

  constructor(clock: SdkClock, send: Send) {
    this.#clock = clock
    this.#send = send
  }

  /**
   * Resolves with the first result. Rejects once every receiver answered with an error, at the timeout, when the signal
   * aborts, or if the request is refused or cannot be sent.
   */
  async request(
    to: string,
    data: Json,
    { timeout = DEFAULT_TIMEOUT_MS, signal }: RequestOptions,
  ): Promise<Json> {
    if (!(timeout > 0 && timeout <= MAX_TIMEOUT_MS)) throw invalidTimeoutError()
    signal?.throwIfAborted()
    if (this.#pending.size >= MAX_PENDING_REQUESTS) throw tooManyPendingError()
    const id = this.#idPrefix + ++this.#counter
    const sendController = new AbortController()
    const abort = () => this.#remove(id)?.reject(signal?.reason)
    const cancel = this.#clock.after(timeout, () => this.#remove(id)?.reject(timeoutError(timeout)))
    signal?.addEventListener('abort', abort, { once: true })
    try {
      return await new Promise<Json>((resolve, reject) => {
        const acknowledgement = this.#send({ id, to, data }, sendController.signal)
        this.#pending.set(id, {
          resolve,
          reject,
          receivers: null,
          refusedBy: new Set(),
          refusal: undefined,
        })
        acknowledgement.then(
          delivery => this.#sent(id, delivery),
          error => this.#remove(id)?.reject(error),
        )
      })
    } finally {
      cancel()
      signal?.removeEventListener('abort', abort)
      sendController.abort() // Has no effect on sends that the hub has acknowledged.
    }
  }

  /**
   * Handles a message that is an answer, and returns whether it is; drops an answer that no request of this agent
   * awaits.
   */
  handleAnswer({ from, reply_to, data }: MessageFrame): boolean {
    if (reply_to === undefined || !reply_to.startsWith(REQUEST_ID_PREFIX)) return false
    const pending = this.#pending.get(reply_to)
    if (!pending) return true
    const answer = toAnswer(data)
    if ('result' in answer) this.#remove(reply_to)?.resolve(answer.result)
    else {
      pending.refusedBy.add(from)
      if (answer.error.code !== 'no_handler' || !pending.refusal) pending.refusal = refusalError(answer.error)
      this.#rejectIfAllRefused(reply_to, pending)
    }
    return true
  }

  rejectAll(error: KeywayError): void {
    for (const id of [...this.#pending.keys()]) this.#remove(id)?.reject(error)
  }

  #sent(id: string, { delivered, held = 0 }: Delivery): void {
    const pending = this.#pending.get(id)
    if (!pending) return
    pending.receivers = delivered + held
    if (pending.receivers === 0) this.#remove(id)?.reject(noRespondersError())
    else this.#rejectIfAllRefused(id, pending)
  }

  /** The number of receivers comes with the acknowledgement, which may arrive after their answers. */
  #rejectIfAllRefused(id: string, { receivers, refusedBy, refusal }: PendingRequest): void {
    if (receivers !== null && refusedBy.size >= receivers) this.#remove(id)?.reject(refusal)
  }

  #remove(id: string): PendingRequest | undefined {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    return pending
  }
}

/** Data that is not an `Answer` is itself the result, so that clients without this convention can answer. */
function toAnswer(data: Json): Answer {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return { result: data }
  const { result, error } = data
  if (isErrorMember(error)) return { error }
  return { result: result === undefined ? data : result }
}

function isErrorMember(error: Json | undefined): error is { code: string; message: string } {
  if (typeof error !== 'object' || error === null || Array.isArray(error)) return false
  return typeof error.code === 'string' && typeof error.message === 'string'
}

function refusalError({ code, message }: { code: string; message: string }): KeywayError {
  if (code === 'no_handler') return noRespondersError()
  return new KeywayError('request_failed', message, { reason: code, retryable: code === 'busy' })
}

function noRespondersError(): KeywayError {
  const advice = 'No agent that answers requests is connected there. Check the id, or try again later.'
  return new KeywayError('no_responders', advice, { retryable: true })
}

function timeoutError(timeout: number): KeywayError {
  const message = `No answer came within ${timeout} ms. The request may have been handled all the same.`
  return new KeywayError('timeout', message, { retryable: true })
}

function tooManyPendingError(): KeywayError {
  const message = `${MAX_PENDING_REQUESTS} requests wait for their answers. Await request() before sending more.`
  return new KeywayError('queue_full', message, { retryable: true })
}

function invalidTimeoutError(): KeywayError {
  const message = `timeout: must be more than 0 and at most ${MAX_TIMEOUT_MS} milliseconds, for example 5000.`
  return new KeywayError('invalid_configuration', message)
}
