import { type Answer, type Json, REQUEST_ID_PREFIX } from '@keyway/sdk/protocol'
import type { Clock } from '../clock.ts'
import { newId } from '../ids.ts'
import { randomToken } from '../secrets.ts'

/** A requester over HTTP is no connection: its name, which takes one answer, is this and an id. */
const API_REQUESTER_PREFIX = 'api.'
const REQUEST_ID_BYTES = 16
/** How long an answer is awaited, in milliseconds. */
export const API_ANSWER_TIMEOUT_MS = 4000
/** Maximum number of requests of one owner that await their answers on this node. */
export const MAX_API_REQUESTS_PER_OWNER = 8

export function isApiRequester(to: string): boolean {
  return to.startsWith(API_REQUESTER_PREFIX)
}

export interface ApiRequest {
  /** `from` of the message, to which agents answer. */
  requester: string
  /** `id` of the message, which an answer repeats as `reply_to`. */
  id: string
  /** Resolves with null if no answer came in time. */
  answer: Promise<Answer | null>
  /** No longer waits; `answer` resolves. */
  end(): void
}

/** Requests of this node that await an answer: what the pages ask agents. */
export class ApiRequests {
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #pending = new Map<string, { userId: string; id: string; settle(answer: Answer | null): void }>()

  constructor(clock: Clock, timeoutMs: number = API_ANSWER_TIMEOUT_MS) {
    this.#clock = clock
    this.#timeoutMs = timeoutMs
  }

  /** Null if the owner has too many. */
  begin(userId: string): ApiRequest | null {
    const ofOwner = [...this.#pending.values()].filter(each => each.userId === userId)
    if (ofOwner.length >= MAX_API_REQUESTS_PER_OWNER) return null
    const requester = API_REQUESTER_PREFIX + newId(this.#clock.now())
    // Unguessable, so that only connections that got it can answer.
    const id = REQUEST_ID_PREFIX + randomToken(REQUEST_ID_BYTES)
    const { promise, resolve } = Promise.withResolvers<Answer | null>()
    const timer = setTimeout(() => this.#settle(requester, null), this.#timeoutMs)
    const settle = (answer: Answer | null) => {
      clearTimeout(timer)
      resolve(answer)
    }
    this.#pending.set(requester, { userId, id, settle })
    return { requester, id, answer: promise, end: () => this.#settle(requester, null) }
  }

  /** Takes the message frame of an answer; false if it is none to a request of this node. */
  take(userId: string, requester: string, frame: string): boolean {
    const pending = this.#pending.get(requester)
    if (pending?.userId !== userId) return false
    const { reply_to, data } = JSON.parse(frame) as { reply_to?: string; data: Json }
    if (reply_to !== pending.id) return false
    this.#settle(requester, toAnswer(data))
    return true
  }

  stop(): void {
    for (const requester of [...this.#pending.keys()]) this.#settle(requester, null)
  }

  #settle(requester: string, answer: Answer | null): void {
    const pending = this.#pending.get(requester)
    this.#pending.delete(requester)
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
