import type { Duplex } from 'node:stream'
import type { FrameErrorCode, ServerFrame } from '@keyway/sdk/protocol'
import { WebSocket } from 'ws'
import { allows, type Scopes } from '../api-keys/api-key.ts'
import { type Instant, SECOND, toRfc3339 } from '../clock.ts'
import type { ConnectionIdentity, LiveConnection } from '../events.ts'
import type { Caller } from '../network.ts'
import { type CloseStatus, RESUMED_ELSEWHERE, SLOW_CONSUMER } from './close-codes.ts'
import type { KeyStatus, TokenClaims } from './hub-ports.ts'
import type { KeptMessage, MessageLog } from './message-log.ts'
import type { NumberedSends } from './numbered-sends.ts'
import type { PresenceRow } from './presence-store.ts'
import { type Bucket, FRAME_ALLOWANCE, newBucket } from './rate-limits.ts'
import { textFrame } from './text-frame.ts'

/** Ping interval of every connection, announced in `ready`. */
export const HEARTBEAT_SECONDS = 25
/** Maximum unsent bytes buffered for one connection. */
const MAX_BUFFERED_BYTES = 1024 * 1024
/**
 * When an agent resumes on another socket, the old one is terminated without a close handshake if it has more unsent
 * bytes than this: an agent could resume hundreds of times while the handshakes last, and each socket keeps its buffer.
 */
const MAX_CLOSING_BYTES = 64 * 1024

/**
 * A WebSocket with a reference to its connection, so that all sockets can share the same listeners, without a closure
 * for each.
 */
export class HubSocket extends WebSocket {
  connection: AgentConnection | null = null
  /** The underlying TCP or TLS stream; set when the handshake is answered. */
  stream!: Duplex

  /**
   * Writes an encoded frame of RFC 6455 to the stream, bypassing ws. Frames stay in order, since ws queues frames only
   * if it compresses, which is disabled.
   */
  writeFrame(frame: Buffer): void {
    this.stream.write(frame)
  }
}

/** Callbacks to the hub of the node that the connection is on. */
export interface ConnectionHost {
  /**
   * Removes the connection from registry and presence. Called once, before the close frame is written. `reason` is the
   * reason of the close status, `closed` if the agent closed the connection or violated the protocol, `lost` if the
   * socket broke, or `away` if the connection is handed over to a successor.
   */
  deregister(connection: AgentConnection, reason: string): void
  /** Called before an open connection becomes `held`. */
  hold(connection: AgentConnection): void
  /** Logs that this side closes the connection, with the status that it sends. */
  logClose(connection: AgentConnection, closeStatus: CloseStatus): void
}

/** The state that a connection hands over to its successor, the connection that resumes it. */
export type HandoverState = Pick<AgentConnection, 'id' | 'log' | 'sends'>

/**
 * An agent's connection to this node. It is `pending` until `ready` is sent, and `held` after its socket broke: without
 * a socket it keeps its messages until the agent resumes it or it expires. It is `closed` once it has ended or was
 * handed over to a successor.
 */
export class AgentConnection {
  /** A resumed connection gets the id of the one that it continues. */
  id: string
  readonly userId: string
  address: string
  client: string | null
  readonly connectedAt: Instant
  /** Null while the connection is held. */
  #socket: HubSocket | null
  readonly #host: ConnectionHost
  keyId: string
  keyName: string | null = null
  scopes: Scopes
  tokenExpiresAt: Instant
  keyExpiresAt: Instant = Number.POSITIVE_INFINITY
  state: 'pending' | 'open' | 'held' | 'closed' = 'pending'
  /** The log of messages to the agent. */
  log: MessageLog
  /** The agent's numbered sends; null before the first one. */
  sends: NumberedSends | null = null
  /**
   * The hash of the secret in the resume token; null before the token is sent in `ready`, or while the connection is
   * moving to this node.
   */
  resumeHash: string | null = null
  /** When the socket broke; meaningful only while the connection is held. */
  heldAt: Instant = 0
  /** The sequence number of the last message written to the socket before it broke; meaningful only while held. */
  heldSeq = 0
  /** The sequence number of the last message to the agent before this node's last ping. */
  #pingedSeq = 0
  /** The id of the new token's key during a renewal, empty until the token is verified; null if none is in progress. */
  renewalKeyId: string | null = null
  /** Whether the key changed while its status was being loaded, so that the status must be loaded again. */
  statusIsStale = false
  /** Whether `token_expiring` was sent, and no renewal has extended `expiresAt` since. */
  expiryNoticeSent = false
  lastReceivedAt: Instant
  nextPingAt: Instant
  /** The connection's open time has been metered up to this instant. */
  meteredAt: Instant
  frameBucket: Bucket
  /** Null before the first renewal. */
  renewalBucket: Bucket | null = null

  constructor(
    id: string,
    socket: HubSocket | null,
    claims: TokenClaims,
    caller: Pick<Caller, 'address' | 'client'>,
    now: Instant,
    host: ConnectionHost,
    log: MessageLog,
  ) {
    this.id = id
    this.#socket = socket
    this.#host = host
    this.log = log
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
    this.frameBucket = newBucket(FRAME_ALLOWANCE, now)
    if (socket) socket.connection = this
  }

  send(frame: ServerFrame): void {
    this.write(JSON.stringify(frame))
  }

  /** Sends an error about a frame; the connection stays open. `id` is the id of the frame, if it has one. */
  sendError(code: FrameErrorCode, detail: string, id?: string): void {
    this.send({ type: 'error', code, detail, ...(id === undefined ? {} : { id }) })
  }

  /** Sends a text frame; false if the socket is not open, or if the connection reads too slowly, which closes it. */
  write(text: string): boolean {
    return this.#isWritable() && this.#writeFrame(textFrame(text))
  }

  /** Like `write`, for a frame that is encoded already and may be shared by several connections. */
  writeFrame(frame: Buffer): boolean {
    return this.#isWritable() && this.#writeFrame(frame)
  }

  /** Buffers writes until `uncork`, so that one system call sends them all. */
  cork(): void {
    this.#socket?.stream.cork()
  }

  uncork(): void {
    this.#socket?.stream.uncork()
  }

  /**
   * Numbers and keeps a message, and writes it if the socket is open; otherwise returns `held`. Null if the connection
   * is closed, or is closed by this: the agent reads too slowly, or a held connection has more unread messages than the
   * log keeps.
   */
  deliver(message: KeptMessage): 'delivered' | 'held' | null {
    const seq = this.log.add(message)
    if (this.#isWritable() && this.#writeFrame(message.numbered(seq))) return 'delivered'
    if (this.state === 'held' && this.log.floor > this.heldSeq) this.close(SLOW_CONSUMER)
    return this.state === 'closed' ? null : 'held'
  }

  /** Writes the kept messages whose sequence numbers are above `lastSeq`. Returns the number of bytes written. */
  replay(lastSeq: number): number {
    let [seq, bytes] = [lastSeq, 0]
    if (this.#socket?.readyState !== WebSocket.OPEN) return 0
    for (const message of this.log.after(lastSeq)) {
      const frame = message.numbered(++seq)
      bytes += frame.length
      this.#writeFrame(frame)
    }
    return bytes
  }

  /**
   * Sends a ping of RFC 6455, whose pong confirms all messages that were written before it. Sends none while the
   * connection has no socket or reads too slowly.
   */
  ping(): void {
    if (!this.#socket || this.readsTooSlowly) return
    this.#pingedSeq = this.log.seq
    this.#socket.ping()
  }

  /** Called for a pong: the agent has received everything that was written before the last ping. */
  receivedPong(): void {
    this.log.forget(this.#pingedSeq)
  }

  pong(data: Buffer): void {
    if (this.#socket?.readyState === WebSocket.OPEN && !this.readsTooSlowly) this.#socket.pong(data, false)
  }

  /** Deregisters the connection, so that it gets no more frames or messages; then starts the close handshake. */
  close(closeStatus: CloseStatus): void {
    if (this.state === 'closed') return
    this.end(closeStatus.reason)
    this.#socket?.close(closeStatus.code, closeStatus.reason)
    this.#host.logClose(this, closeStatus)
  }

  /** Closes the socket and holds an open connection, so that it can be resumed; closes any other for good. */
  closeAndHold(closeStatus: CloseStatus): void {
    const socket = this.#socket
    if (!this.hold()) {
      this.close(closeStatus)
      return
    }
    socket?.close(closeStatus.code, closeStatus.reason)
    this.#host.logClose(this, closeStatus)
  }

  /**
   * Closes the connection and stops reading: otherwise ws would parse the rest of a flood until the peer answers the
   * close frame. Further input is discarded, and the write side of the stream ends after the close frame.
   */
  closeAndDiscard(closeStatus: CloseStatus): void {
    this.close(closeStatus)
    const { stream } = this.#socket!
    stream.removeAllListeners('data')
    stream.resume()
    stream.end()
  }

  /**
   * Destroys the socket without a close handshake, since the peer does not respond. An open connection becomes held,
   * any other ends.
   */
  terminate(): void {
    const socket = this.#socket
    if (!this.hold()) this.end('lost')
    socket?.terminate()
  }

  /**
   * Called when the socket broke, or before this side closes it: from now on messages are kept instead of written.
   * False if the connection was not open.
   */
  hold(): boolean {
    if (this.state !== 'open') return false
    this.#host.hold(this)
    this.state = 'held'
    this.heldSeq = this.log.seq
    this.#socket!.connection = null
    this.#socket = null
    return true
  }

  /** Ends the connection, so that it can no longer be resumed. Does not close its socket. */
  end(reason: string): void {
    if (this.state === 'closed') return
    this.#deregister(reason)
    this.log.clear()
  }

  /** Ends the connection here, closes its socket, and returns its state for the successor. */
  handOver(): HandoverState {
    this.#deregister('away')
    if (this.unsentBytes > MAX_CLOSING_BYTES) this.#socket!.terminate()
    else this.#socket?.close(RESUMED_ELSEWHERE.code, RESUMED_ELSEWHERE.reason)
    this.#host.logClose(this, RESUMED_ELSEWHERE)
    return this
  }

  takeOver({ id, log, sends }: HandoverState): void {
    this.id = id
    this.log = log
    this.sends = sends
  }

  get expiresAt(): Instant {
    return Math.min(this.tokenExpiresAt, this.keyExpiresAt)
  }

  get readsTooSlowly(): boolean {
    return this.unsentBytes > MAX_BUFFERED_BYTES
  }

  get unsentBytes(): number {
    return this.#socket?.bufferedAmount ?? 0
  }

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

  get identity(): ConnectionIdentity {
    return { connectionId: this.id, userId: this.userId, keyId: this.keyId }
  }

  presenceRow(nodeId: string): PresenceRow {
    return { ...this.details, nodeId, userId: this.userId }
  }

  get details(): LiveConnection {
    const { id, keyId, keyName, address, client, connectedAt } = this
    return { connectionId: id, keyId, keyName, address, client, connectedAt }
  }

  /** Whether a frame can be written. Closes the connection if its agent reads too slowly. */
  #isWritable(): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false
    if (!this.readsTooSlowly) return true
    this.close(SLOW_CONSUMER)
    return false
  }

  #writeFrame(frame: Buffer): true {
    this.#socket!.writeFrame(frame)
    return true
  }

  #deregister(reason: string): void {
    if (this.state === 'closed') return
    this.#host.deregister(this, reason)
    this.state = 'closed'
  }
}
