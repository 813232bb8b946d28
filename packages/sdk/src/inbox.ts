import type { AgentMessage } from './agent-options.ts'
import type { KeywayError } from './errors.ts'
import type { MessageFrame } from './handover.ts'
import { MessageStream } from './message-stream.ts'
import { RecentIds } from './recent-ids.ts'

/** Received messages, without duplicates, for all iterators. */
export class Inbox {
  #seen = new RecentIds()
  #streams = new Set<MessageStream<AgentMessage>>()

  /** False if the message has already arrived in another session (`HubSession`). */
  isNew(session: object, { id, from }: MessageFrame): boolean {
    return this.#seen.add(`${from} ${id}`, session)
  }

  deliver({ id, from, from_key_id, data, reply_to }: MessageFrame): AgentMessage {
    const message: AgentMessage = { id, from, fromKeyId: from_key_id, data }
    if (reply_to !== undefined) message.replyTo = reply_to
    for (const stream of this.#streams) stream.push(message)
    return message
  }

  open(): MessageStream<AgentMessage> {
    const stream = new MessageStream<AgentMessage>(ended => this.#streams.delete(ended))
    this.#streams.add(stream)
    return stream
  }

  /** Ends all iterators, with the error if there is one. Returns whether there were any. */
  end(error: KeywayError | undefined): boolean {
    const streams = [...this.#streams]
    this.#streams.clear()
    for (const stream of streams) stream.end(error)
    return streams.length > 0
  }
}
