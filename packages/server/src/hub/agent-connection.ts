import type { Duplex } from 'node:stream'
import type { FrameErrorCode, ServerFrame } from '@keyway/sdk/protocol'
import { WebSocket } from 'ws'
import { allows, type Scopes } from '../api-keys/api-key.ts'
import { type Instant, SECOND, toRfc3339 } from '../clock.ts'
import type { Caller } from '../network.ts'
import { type Ending, SLOW_CONSUMER } from './close-codes.ts'
import { HEARTBEAT_SECONDS } from './heartbeat.ts'
import type { KeyStatus, TokenClaims } from './hub-ports.ts'
import type { PresenceRow } from './presence-store.ts'
import { type Bucket, FRAME_ALLOWANCE, fullBucket } from './rate-limits.ts'

/** Bytes that may wait unsent for one connection. */
const MAX_BUFFERED_BYTES = 1024 * 1024

/** The socket refers to its connection, so that all sockets share their listeners: a closure each would cost more. */
export class HubSocket extends WebSocket {
  connection: AgentConnection | null = null
  /** What carries the frames; set when the handshake is answered. */
  stream!: Duplex
}

/** What a connection tells the node that holds it. */
export interface ConnectionHost {
  /** It ends: take it out of the registry and of presence. Called once, before the close frame is written. */
  deregister(connection: AgentConnection): void
  ended(connection: AgentConnection, ending: Ending): void
}

/** An agent's connection to this node: who it is, by which key, until when; and all that can be done to it. */
export class AgentConnection {
  readonly id: string
  readonly userId: string
  readonly address: string
  readonly client: string | null
  readonly connectedAt: Instant
  readonly socket: HubSocket
  readonly #host: ConnectionHost
  keyId: string
  keyName: string | null = null
  scopes: Scopes
  tokenExpiresAt: Instant
  keyExpiresAt: Instant = Number.POSITIVE_INFINITY
  state: 'pending' | 'open' | 'closed' = 'pending'
  /** The key that a renewal in flight names; empty while its token is verified; null: no renewal. */
  renewingTo: string | null = null
  /** Its key changed after its status was asked for, so an answer under way may be older than the change. */
  statusIsStale = false
  /** `token_expiring` was sent for the present token. */
  expiryNoticed = false
  heardAt: Instant
  pingAt: Instant
  frames: Bucket

  constructor(
    id: string,
    socket: HubSocket,
    claims: TokenClaims,
    caller: Caller,
    now: Instant,
    host: ConnectionHost,
  ) {
    this.id = id
    this.socket = socket
    this.#host = host
    this.userId = claims.agentId
    this.keyId = claims.keyId
    this.scopes = claims.scopes
    this.tokenExpiresAt = claims.expiresAt
    this.address = caller.address
    this.client = caller.client
    this.connectedAt = now
    this.heardAt = now
    this.pingAt = now + HEARTBEAT_SECONDS * SECOND
    this.frames = fullBucket(FRAME_ALLOWANCE, now)
    socket.connection = this
  }

  send(frame: ServerFrame): void {
    this.write(JSON.stringify(frame))
  }

  /** Refuses a frame; the connection stays open. `id` is that of the refused frame, where it had one. */
  fail(code: FrameErrorCode, detail: string, id?: string): void {
    this.send({ type: 'error', code, detail, ...(id === undefined ? {} : { id }) })
  }

  /** Whether the frame was written. A connection that reads slower than others send is closed. */
  write(frame: Buffer | string): boolean {
    if (this.state === 'closed' || this.socket.readyState !== WebSocket.OPEN) return false
    if (this.readsTooSlowly) {
      this.close(SLOW_CONSUMER)
      return false
    }
    this.socket.send(frame, TEXT)
    return true
  }

  pong(data: Buffer): void {
    if (this.socket.readyState === WebSocket.OPEN && !this.readsTooSlowly) this.socket.pong(data, false)
  }

  /** Deregistered first, so that neither frames nor messages reach it; the close handshake goes on by itself. */
  close(ending: Ending): void {
    if (this.state === 'closed') return
    this.#deregister()
    this.socket.close(ending.code, ending.reason)
    this.#host.ended(this, ending)
  }

  /**
   * Closes without reading any further: the rest of a flood would be parsed until the peer answers. What still comes
   * is discarded, and our side of the connection ends behind the close frame.
   */
  shutOut(ending: Ending): void {
    this.close(ending)
    const { stream } = this.socket
    stream.removeAllListeners('data')
    stream.resume()
    stream.end()
  }

  /** Cuts a connection whose peer is not there to answer a close frame. */
  drop(): void {
    this.#deregister()
    this.socket.terminate()
  }

  /** The socket closed by itself. */
  lost(): void {
    this.#deregister()
  }

  /** The token's end or the key's own, whichever comes first. */
  get expiresAt(): Instant {
    return Math.min(this.tokenExpiresAt, this.keyExpiresAt)
  }

  /** More waits for it to read than may. */
  get readsTooSlowly(): boolean {
    return this.socket.bufferedAmount > MAX_BUFFERED_BYTES
  }

  /** Its key may be used: takes over what can change of it. */
  accept(key: KeyStatus): void {
    this.keyName = key.name
    this.keyExpiresAt = key.expiresAt ?? Number.POSITIVE_INFINITY
  }

  allows(scope: string): boolean {
    return allows(this.scopes, scope)
  }

  lifetime(now: Instant): { expires_at: string; expires_in: number } {
    const seconds = Math.max(0, Math.floor((this.expiresAt - now) / SECOND))
    return { expires_at: toRfc3339(this.expiresAt), expires_in: seconds }
  }

  presence(nodeId: string): PresenceRow {
    const { id, userId, keyId, keyName, address, client, connectedAt } = this
    return { connectionId: id, nodeId, userId, keyId, keyName, address, client, connectedAt }
  }

  #deregister(): void {
    if (this.state === 'closed') return
    this.#host.deregister(this)
    this.state = 'closed'
  }
}

const TEXT = { binary: false }
