import { WebSocket } from 'ws'
import { allows, type Scopes } from '../api-keys/api-key.ts'
import { type Instant, SECOND, toRfc3339 } from '../clock.ts'
import type { Caller } from '../network.ts'
import { HEARTBEAT_SECONDS } from './heartbeat.ts'
import type { Standing, TokenClaims } from './hub-questions.ts'
import type { PresenceRow } from './presence-store.ts'
import { type Bucket, FRAME_ALLOWANCE, fullBucket } from './rate-limits.ts'

/** What may wait unsent for one connection, in bytes. */
const MAX_BUFFERED_BYTES = 1024 * 1024

/** The socket knows its connection, so that all sockets share their listeners: a closure each would cost more. */
export class HubSocket extends WebSocket {
  connection: AgentConnection | null = null
}

/** One agent's line to this node: who it is, by which key, until when. */
export class AgentConnection {
  readonly id: string
  readonly userId: string
  readonly address: string
  readonly client: string | null
  readonly connectedAt: Instant
  readonly socket: HubSocket
  keyId: string
  keyName: string | null = null
  scopes: Scopes
  tokenExpiresAt: Instant
  keyExpiresAt: Instant = Number.POSITIVE_INFINITY
  state: 'pending' | 'open' | 'closed' = 'pending'
  /** The key that a renewal in flight names; empty while its token is verified; null: no renewal. */
  renewingTo: string | null = null
  /** Its key changed, so an answer that is still under way may be older than the change. */
  askAgain = false
  noticed = false
  heardAt: Instant
  pingAt: Instant
  frames: Bucket

  constructor(id: string, socket: HubSocket, claims: TokenClaims, caller: Caller, now: Instant) {
    this.id = id
    this.socket = socket
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

  /** The token's end or the key's own, whichever comes first. */
  get expiresAt(): Instant {
    return Math.min(this.tokenExpiresAt, this.keyExpiresAt)
  }

  /** More waits for it to read than may: it is closed with 4429 `slow_consumer` when the next frame is due. */
  get readsTooSlowly(): boolean {
    return this.socket.bufferedAmount > MAX_BUFFERED_BYTES
  }

  accept(standing: Standing): void {
    this.keyName = standing.name
    this.keyExpiresAt = standing.expiresAt ?? Number.POSITIVE_INFINITY
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
}
