import type { Duplex } from 'node:stream'
import type { FrameErrorCode, ServerFrame } from '@keyway/sdk/protocol'
import { WebSocket } from 'ws'
import { allows, type Scopes } from '../api-keys/api-key.ts'
import { type Instant, SECOND, toRfc3339 } from '../clock.ts'
import type { LiveConnection } from '../events.ts'
import type { Caller } from '../network.ts'
import { type CloseStatus, SLOW_CONSUMER } from './close-codes.ts'
import { HEARTBEAT_SECONDS } from './heartbeat.ts'
import type { KeyStatus, TokenClaims } from './hub-ports.ts'
import type { PresenceRow } from './presence-store.ts'
import { type Bucket, FRAME_ALLOWANCE, newBucket } from './rate-limits.ts'

/** Maximum unsent bytes buffered for one connection. */
const MAX_BUFFERED_BYTES = 1024 * 1024

/** Refers to its connection, so that all sockets share the same listeners instead of a closure each. */
export class HubSocket extends WebSocket {
  connection: AgentConnection | null = null
  /** The underlying TCP or TLS stream; set when the handshake is answered. */
  stream!: Duplex
}

/** Callbacks into the node that holds the connection. */
export interface ConnectionHost {
  /**
   * Removes the connection from registry and presence. Called once, before the close frame is written. `reason`: that of
   * the close frame, or `closed` by the agent, or `lost`.
   */
  deregister(connection: AgentConnection, reason: string): void
  closed(connection: AgentConnection, closeStatus: CloseStatus): void
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
  /** The key changed while its status was being loaded, so the status must be loaded again. */
  statusIsStale = false
  /** Whether `token_expiring` was sent for the current `expiresAt`. */
  expiryNoticed = false
  lastReceivedAt: Instant
  nextPingAt: Instant
  /** Up to when its time was counted, once it is open. */
  meteredAt: Instant
  frames: Bucket
  /** Null before the first renewal. */
  renewals: Bucket | null = null

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
    this.lastReceivedAt = now
    this.nextPingAt = now + HEARTBEAT_SECONDS * SECOND
    this.meteredAt = now
    this.frames = newBucket(FRAME_ALLOWANCE, now)
    socket.connection = this
  }

  send(frame: ServerFrame): void {
    this.write(JSON.stringify(frame))
  }

  /** Sends an error about a frame; the connection stays open. `id` is that of the frame, if it has one. */
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
  close(closeStatus: CloseStatus): void {
    if (this.state === 'closed') return
    this.#deregister(closeStatus.reason)
    this.socket.close(closeStatus.code, closeStatus.reason)
    this.#host.closed(this, closeStatus)
  }

  /**
   * Closes without reading further: otherwise the rest of a flood would be parsed until the peer answers. Incoming
   * data is discarded, and this side is half-closed after the close frame.
   */
  closeAndDiscard(closeStatus: CloseStatus): void {
    this.close(closeStatus)
    const { stream } = this.socket
    stream.removeAllListeners('data')
    stream.resume()
    stream.end()
  }

  /** Closes without a close handshake, since the peer does not respond. */
  terminate(): void {
    this.#deregister('lost')
    this.socket.terminate()
  }

  /** @param code 1006 without a close frame of the agent */
  onSocketClosed(code: number): void {
    this.#deregister(code === 1006 ? 'lost' : 'closed')
  }

  /** The expiry of the token or of the key, whichever is earlier. */
  get expiresAt(): Instant {
    return Math.min(this.tokenExpiresAt, this.keyExpiresAt)
  }

  /** Whether more than MAX_BUFFERED_BYTES are unsent. */
  get readsTooSlowly(): boolean {
    return this.socket.bufferedAmount > MAX_BUFFERED_BYTES
  }

  /** Updates name and expiry from the key. */
  update(key: KeyStatus): void {
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
    return { ...this.facts, nodeId, userId: this.userId }
  }

  get facts(): LiveConnection {
    const { id, keyId, keyName, address, client, connectedAt } = this
    return { connectionId: id, keyId, keyName, address, client, connectedAt }
  }

  #deregister(reason: string): void {
    if (this.state === 'closed') return
    this.#host.deregister(this, reason)
    this.state = 'closed'
  }
}

const TEXT = { binary: false }
