import { type Answer, type Json, REQUEST_ID_PREFIX } from '@keyway/sdk/protocol'
import { randomToken } from '../secrets.ts'

/** Prefix of the `from` of requests over HTTP, which are made by no connection; the id of the node follows. */
const API_REQUESTER_PREFIX = 'api.'
const REQUEST_ID_BYTES = 16
/** How long an answer is awaited, in milliseconds. */
export const API_ANSWER_TIMEOUT_MS = 4000
/** Maximum number of pending requests of one owner on this node. */
export const MAX_API_REQUESTS_PER_OWNER = 8

/** The node of a request over HTTP, from the name that agents answer to; null for the id of a connection or key. */
export function nodeOfRequester(to: string): string | null {
  return to.startsWith(API_REQUESTER_PREFIX) ? to.slice(API_REQUESTER_PREFIX.length) : null
}

export interface ApiRequest {
  /** `id` of the message, which an answer repeats as `reply_to`. */
  id: string
  /** Resolves with null if no answer came in time. */
  answer: Promise<Answer | null>
  /** Stops waiting; `answer` resolves. */
  end(): void
}

/** Pending requests of this node over HTTP, which the pages send to agents. */
export class ApiRequests {
  /** The `from` of its requests, to which agents send their answers. */
  readonly requester: string
  readonly #timeoutMs: number
  readonly #pending = new Map<string, { userId: string; settle(answer: Answer | null): void }>()

  constructor(nodeId: string, timeoutMs: number = API_ANSWER_TIMEOUT_MS) {
    this.requester = API_REQUESTER_PREFIX + nodeId
    this.#timeoutMs = timeoutMs
  }

  /** Begins a request; null if the owner has too many. */
  begin(userId: string): ApiRequest | null {
    const ofOwner = [...this.#pending.values()].filter(each => each.userId === userId)
    if (ofOwner.length >= MAX_API_REQUESTS_PER_OWNER) return null
    // Unguessable, so that only connections that got it can answer.
    const id = REQUEST_ID_PREFIX + randomToken(REQUEST_ID_BYTES)
    const { promise, resolve } = Promise.withResolvers<Answer | null>()
    const timer = setTimeout(() => this.#settle(id, null), this.#timeoutMs)
    const settle = (answer: Answer | null) => {
      clearTimeout(timer)
      resolve(answer)
    }
    this.#pending.set(id, { userId, settle })
    return { id, answer: promise, end: () => this.#settle(id, null) }
  }

  /** Takes the `message` frame of an answer; false if it answers no request of this node. */
  take(userId: string, frame: string): boolean {
    const { reply_to: id, data } = JSON.parse(frame) as { reply_to?: string; data: Json }
    const pending = id === undefined ? undefined : this.#pending.get(id)
    if (pending?.userId !== userId) return false
    this.#settle(id!, toAnswer(data))
    return true
  }

  stop(): void {
    for (const id of [...this.#pending.keys()]) this.#settle(id, null)
  }

  #settle(id: string, answer: Answer | null): void {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    pending?.settle(answer)
  }
}

/** Data of another form is itself the result (docs/hub-protocol.md, section 3). */
function toAnswer(data: Json): Answer {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return { result: data }
  const { result, error } = data
  if (typeof error === 'object' && error !== null && !Array.isArray(error)) {
    const { code, message } = error
    if (typeof code === 'string' && typeof message === 'string') return { error: { code, message } }
  }
  return { result: result === undefined ? data : result }
}
