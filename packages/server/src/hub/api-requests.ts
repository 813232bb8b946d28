import { type Answer, type Json, REQUEST_ID_PREFIX } from '@keyway/sdk/protocol'
import { randomToken } from '../secrets.ts'

/**
 * The beginning of `from` in a request that came over HTTP instead of from a connection; the id of the node that sent
 * the request to the agent follows.
 */
const API_REQUESTER_PREFIX = 'api.'
const REQUEST_ID_BYTES = 16
export const API_ANSWER_TIMEOUT_MS = 4000
/** Maximum number of pending requests of one owner on this node. */
export const MAX_API_REQUESTS_PER_OWNER = 8

/**
 * The id of the node that awaits an answer, parsed from the `to` of the answer; null if `to` names connections, by an
 * id or as `all`.
 */
export function nodeOfRequester(to: string): string | null {
  return to.startsWith(API_REQUESTER_PREFIX) ? to.slice(API_REQUESTER_PREFIX.length) : null
}

export interface ApiRequest {
  /** `id` of the message, which an answer repeats as `reply_to`. */
  id: string
  /** Resolves with null if no answer came in time or before `end`. */
  answer: Promise<Answer | null>
  end(): void
}

/** Pending requests that the service's own pages sent to agents through this node. */
export class ApiRequests {
  /** The `from` of this node's requests, to which agents send their answers. */
  readonly requester: string
  readonly #timeoutMs: number
  /** By request id. */
  readonly #pending = new Map<string, { userId: string; resolve(answer: Answer | null): void }>()

  constructor(nodeId: string, timeoutMs: number = API_ANSWER_TIMEOUT_MS) {
    this.requester = API_REQUESTER_PREFIX + nodeId
    this.#timeoutMs = timeoutMs
  }

  /** Null if the owner has too many pending requests. */
  begin(userId: string): ApiRequest | null {
    const ownersRequests = [...this.#pending.values()].filter(each => each.userId === userId)
    if (ownersRequests.length >= MAX_API_REQUESTS_PER_OWNER) return null
    // Unguessable, so that only connections that received the request can answer it.
    const id = REQUEST_ID_PREFIX + randomToken(REQUEST_ID_BYTES)
    const { promise, resolve } = Promise.withResolvers<Answer | null>()
    const timer = setTimeout(() => this.#resolve(id, null), this.#timeoutMs)
    const resolveRequest = (answer: Answer | null) => {
      clearTimeout(timer)
      resolve(answer)
    }
    this.#pending.set(id, { userId, resolve: resolveRequest })
    return { id, answer: promise, end: () => this.#resolve(id, null) }
  }

  /** Handles the `message` frame of an answer; false if it answers no pending request of this user on this node. */
  receiveAnswer(userId: string, frame: string): boolean {
    const { reply_to: id, data } = JSON.parse(frame) as { reply_to?: string; data: Json }
    const pending = id === undefined ? undefined : this.#pending.get(id)
    if (pending?.userId !== userId) return false
    this.#resolve(id!, toAnswer(data))
    return true
  }

  stop(): void {
    for (const id of [...this.#pending.keys()]) this.#resolve(id, null)
  }

  #resolve(id: string, answer: Answer | null): void {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    pending?.resolve(answer)
  }
}

/** Data without `result` and without a valid `error` is itself the result (docs/hub-protocol.md, section 3). */
function toAnswer(data: Json): Answer {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return { result: data }
  const { result, error } = data
  if (typeof error === 'object' && error !== null && !Array.isArray(error)) {
    const { code, message } = error
    if (typeof code === 'string' && typeof message === 'string') return { error: { code, message } }
  }
  return { result: result === undefined ? data : result }
}
