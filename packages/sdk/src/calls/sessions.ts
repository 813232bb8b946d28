import type { Page, SessionObject } from '../protocol.ts'
import { segment, type Transport } from '../transport.ts'
import type { PageOptions } from './paging.ts'

/** The account's sessions. All calls need a session, or a key without scopes. */
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

  /** Revokes all sessions but the calling one; all of them if called with a key. */
  revokeOthers(): Promise<void> {
    return this.#transport.call('DELETE', '/v1/sessions')
  }
}
