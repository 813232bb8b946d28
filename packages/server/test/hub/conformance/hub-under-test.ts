import assert from 'node:assert/strict'
import { request } from 'node:http'
import { request as requestTls } from 'node:https'
import type { AgentTokenAnswer, ServerFrame } from '@keyway/sdk/protocol'
import { Client, type ConnectOptions } from '../client.ts'

/** One statement of docs/hub-protocol.md, and its check from outside. */
export interface Check {
  /** Section number of docs/hub-protocol.md. */
  section: string
  promise: string
  /** Whether the check may take up to a minute. */
  slow?: boolean
  /** Whether the check creates and revokes keys, for which it needs the owner's access token. */
  needsOwner?: boolean
  run(hub: HubUnderTest): Promise<void>
}

export interface ReadyClient extends Client {
  ready: Extract<ServerFrame, { type: 'ready' }>
}

export interface MadeKey {
  id: string
  key: string
}

/** The hub to check, given by its URL and a key. */
export class HubUnderTest {
  readonly origin: string
  readonly hubUrl: string
  #key: string
  #accessToken: string | undefined
  #clients: Client[] = []
  #made: MadeKey[] = []

  constructor(url: string, key: string, accessToken: string | undefined) {
    this.origin = new URL(url).origin
    this.hubUrl = `${this.origin.replace(/^http/, 'ws')}/hub`
    this.#key = key
    this.#accessToken = accessToken
  }

  async exchange(key: string = this.#key): Promise<AgentTokenAnswer> {
    const response = await fetch(`${this.origin}/auth/agent-token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ api_key: key }),
    })
    const answer = await response.text()
    assert.equal(response.status, 200, `POST /auth/agent-token: ${answer}`)
    return JSON.parse(answer)
  }

  async token(): Promise<string> {
    return (await this.exchange()).token
  }

  dial(token: string | null, options?: ConnectOptions): Client {
    const client = new Client(this.hubUrl, token, options)
    this.#clients.push(client)
    return client
  }

  /** Connects and waits for `ready`. */
  async connect(options?: ConnectOptions & { token?: string }): Promise<ReadyClient> {
    const client = this.dial(options?.token ?? (await this.token()), options)
    return Object.assign(client, { ready: await client.next('ready') })
  }

  /** Sends a handshake with exactly these headers; returns the answer's status and `Upgrade` header. */
  async handshake(headers: Record<string, string>): Promise<{ status: number; upgrade: string | undefined }> {
    const send = this.origin.startsWith('https') ? requestTls : request
    return new Promise((resolve, reject) => {
      const call = send(`${this.origin}/hub`, { headers, agent: false })
      call.on('response', response => {
        response.resume()
        resolve({ status: response.statusCode ?? 0, upgrade: response.headers.upgrade })
      })
      call.on('upgrade', (_response, socket) => {
        socket.destroy()
        resolve({ status: 101, upgrade: undefined })
      })
      call.on('error', reject)
      call.end()
    })
  }

  async makeKey(attributes: object = {}): Promise<MadeKey> {
    const createdKey = await this.owner<MadeKey>('POST', '/v1/api-keys', {
      name: 'conformance',
      ...attributes,
    })
    this.#made.push(createdKey)
    return createdKey
  }

  revoke({ id }: MadeKey): Promise<unknown> {
    return this.owner('DELETE', `/v1/api-keys/${id}`)
  }

  /** Calls the API as the owner of the key. */
  async owner<Answer = unknown>(method: string, path: string, body?: object): Promise<Answer> {
    const response = await fetch(this.origin + path, {
      method,
      headers: {
        authorization: `Bearer ${this.#accessToken}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
    return (text ? JSON.parse(text) : undefined) as Answer
  }

  /** Terminates the connections of a check, and revokes its keys. */
  async clear(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.socket.terminate()
    for (const createdKey of this.#made.splice(0)) await this.revoke(createdKey).catch(() => {}) // The key may have expired.
  }
}
