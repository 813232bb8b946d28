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
import { type Bucket, FRAME_ALLOWANCE, newBucket } from './rate-limits.ts'

/** Maximum unsent bytes buffered for one connection. */
const MAX_BUFFERED_BYTES = 1024 * 1024

/** Refers to its connection, so that all sockets share the same listeners instead of having closures each. */
export class HubSocket extends WebSocket {
  connection: AgentConnection | null = null
  /** The underlying TCP or TLS stream; set when the handshake is answered. */
  stream!: Duplex
}

/** Callbacks of a connection to its node. */
export interface ConnectionHost {
  /** Removes it from the registry and presence. Called once, before the close frame is written. */
  deregister(connection: AgentConnection): void
  ended(connection: AgentConnection, ending: Ending): void
}

/** An agent's connection to this node, with its key, its expiry and its operations. */
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
  /** The key of a pending renewal; empty while its token is verified; null: no renewal is pending. */
  renewingTo: string | null = null
  /** The key changed while its status was being loaded, so the result may be outdated. */
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
    this.frames = newBucket(FRAME_ALLOWANCE, now)
    socket.connection = this
  }

  send(frame: ServerFrame): void {
    this.write(JSON.stringify(frame))
  }

  /** Refuses a frame; the connection stays open. `id` is that of the refused frame, where it had one. */
  fail(code: FrameErrorCode, detail: string, id?: string): void {
    this.send({ type: 'error', code, detail, ...(id === undefined ? {} : { id }) })
  }

  /** Writes a frame; false if the connection is closed. Closes a connection that reads too slowly. */
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

  /** Deregisters first, so that it gets no more frames or messages; then starts the close handshake. */
  close(ending: Ending): void {
    if (this.state === 'closed') return
    this.#deregister()
    this.socket.close(ending.code, ending.reason)
    this.#host.ended(this, ending)
  }

  /**
   * Closes without reading further: otherwise the rest of a flood would be parsed until the peer answers. Incoming
   * data is discarded, and this side is half-closed after the close frame.
   */
  shutOut(ending: Ending): void {
    this.close(ending)
    const { stream } = this.socket
    stream.removeAllListeners('data')
    stream.resume()
    stream.end()
  }

  /** Terminates a connection whose peer does not respond. */
  drop(): void {
    this.#deregister()
    this.socket.terminate()
  }

  /** The socket was closed. */
  lost(): void {
    this.#deregister()
  }

  /** The expiry of the token or of the key, whichever is earlier. */
  get expiresAt(): Instant {
    return Math.min(this.tokenExpiresAt, this.keyExpiresAt)
  }

  /** Whether more than MAX_BUFFERED_BYTES are unsent. */
  get readsTooSlowly(): boolean {
    return this.socket.bufferedAmount > MAX_BUFFERED_BYTES
  }

  /** Its key is active: updates the properties that can change. */
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
