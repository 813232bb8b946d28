import type { SendOptions } from '../agent-options.ts'
import type { Delivery } from '../pending-sends.ts'
import type { AgentConnectionObject, Json, Page } from '../protocol.ts'
import { segment, type Transport } from '../transport.ts'
import { everyItem, type PageOptions } from './paging.ts'

/** The caller's live connections, on all nodes. */
export class AgentCalls {
  #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list({ limit, cursor }: PageOptions = {}): Promise<Page<AgentConnectionObject>> {
    return this.#transport.call('GET', '/v1/agents', { query: { limit, cursor } })
  }

  all({ limit }: Omit<PageOptions, 'cursor'> = {}): AsyncGenerator<AgentConnectionObject, void> {
    return everyItem(cursor => this.list({ limit, cursor }))
  }

  /**
   * Sends to one connection, or to all of a key. Not retried: the message could arrive twice.
   *
   * @throws KeywayError `not_found` when there is no such connection, neither an open one nor a broken one that can
   *   resume
   */
  send(
    connectionOrKeyId: string,
    data: Json,
    { replyTo }: Pick<SendOptions, 'replyTo'> = {},
  ): Promise<Delivery> {
    const path = `/v1/agents/${segment(connectionOrKeyId)}/messages`
    return this.#transport.call('POST', path, { body: { data, reply_to: replyTo } })
  }

  /** Closes a connection; its agent may reconnect while its key is active. */
  disconnect(connectionId: string): Promise<void> {
    return this.#transport.call('DELETE', `/v1/agents/${segment(connectionId)}`)
  }
}
