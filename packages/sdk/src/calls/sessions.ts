import type { Page, SessionObject } from '../protocol.ts'
import { segment, type Transport } from '../transport.ts'
import type { PageOptions } from './paging.ts'

/** The account's sessions. Ending them requires a session. */
export class SessionCalls {
  #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list({ limit, cursor }: PageOptions = {}): Promise<Page<SessionObject>> {
    return this.#transport.call('GET', '/v1/sessions', { query: { limit, cursor } })
  }

  revoke(sessionId: string): Promise<void> {
    return this.#transport.call('DELETE', `/v1/sessions/${segment(sessionId)}`)
  }

  /** Revokes all sessions but the calling one. */
  revokeOthers(): Promise<void> {
    return this.#transport.call('DELETE', '/v1/sessions')
  }
}
