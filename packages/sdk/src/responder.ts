import type { RequestHandler } from './agent-options.ts'
import { KeywayError } from './errors.ts'
import type { MessageFrame } from './handover.ts'
import { type Answer, type Json, REQUEST_ID_PREFIX } from './protocol.ts'

/** Maximum number of requests that are handled at a time. */
const MAX_HANDLED = 100
/** Number of answers kept for requests that arrive again, since a sender repeats what was not acknowledged. */
const MAX_KEPT_ANSWERS = 256
/** Maximum length of an error's message, in characters. */
const MAX_ERROR_LENGTH = 1000

type SendAnswer = (to: string, answer: Json, replyTo: string) => Promise<unknown>

interface Handled {
  /** The requesting connection; after a reconnection another one. */
  from: string
  answer: Answer | undefined
}

/** Answers the requests that arrive (docs/hub-protocol.md, section 3). */
export class Responder {
  readonly #send: SendAnswer
  readonly #handled = new Map<string, Handled>()
  #running = 0
  handler: RequestHandler | undefined

  constructor(send: SendAnswer) {
    this.#send = send
  }

  /** Whether a message is a request; one that was handled before gets the same answer again. */
  take(frame: MessageFrame): boolean {
    if (!frame.id.startsWith(REQUEST_ID_PREFIX)) return false
    const name = `${frame.from_key_id} ${frame.id}`
    const known = this.#handled.get(name)
    if (known) {
      known.from = frame.from
      if (known.answer) void this.#reply(frame, known.answer)
    } else if (!this.handler) {
      void this.#reply(frame, errorOf('no_handler', 'This agent answers no requests.'))
    } else if (this.#running >= MAX_HANDLED) {
      void this.#reply(frame, errorOf('busy', `This agent handles ${MAX_HANDLED} requests already.`))
    } else {
      void this.#handle(name, frame, this.handler)
    }
    return true
  }

  async #handle(name: string, frame: MessageFrame, handler: RequestHandler): Promise<void> {
    const handled: Handled = { from: frame.from, answer: undefined }
    this.#keep(name, handled)
    this.#running++
    const { id, from, from_key_id, data } = frame
    handled.answer = await answerOf(async () => handler({ id, from, fromKeyId: from_key_id, data }))
    await this.#reply({ ...frame, from: handled.from }, handled.answer)
    this.#running--
  }

  #keep(name: string, handled: Handled): void {
    this.#handled.set(name, handled)
    if (this.#handled.size > MAX_KEPT_ANSWERS) this.#handled.delete(this.#handled.keys().next().value!)
  }

  /** An answer that is no JSON or too long is a failure; one that cannot be sent is given up. */
  async #reply({ id, from }: MessageFrame, answer: Answer): Promise<void> {
    await this.#send(from, answer, id).catch(error => {
      if (error instanceof KeywayError && error.code !== 'too_large') return
      return this.#send(from, errorOf('failed', error.message), id).catch(() => {})
    })
  }
}

async function answerOf(handle: () => Promise<Json | undefined>): Promise<Answer> {
  try {
    return { result: (await handle()) ?? null }
  } catch (error) {
    const chosen = error instanceof KeywayError ? error.reason : undefined
    return errorOf(chosen ?? 'failed', error instanceof Error ? error.message : String(error))
  }
}

function errorOf(code: string, message: string): Extract<Answer, { error: unknown }> {
  return { error: { code, message: message.slice(0, MAX_ERROR_LENGTH) } }
}
