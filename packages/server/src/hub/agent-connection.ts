import {
  type CloseCode,
  type CloseReason,
  HUB_EXPIRY_NOTICE_SECONDS,
  HUB_HEARTBEAT_SECONDS,
  HUB_SILENCE_SECONDS,
} from '@keyway/sdk/protocol'
import { WebSocket } from 'ws'
import { type Instant, SECOND, toRfc3339 } from '../clock.ts'
import { type Caller, networkMatcher } from '../network.ts'
import type { Standing, TokenClaims } from './hub-questions.ts'
import type { PresenceRow } from './presence-store.ts'
import { type Allowance, type Bucket, fullBucket, refill } from './token-bucket.ts'

/** What may wait unsent for one connection, in bytes; more than that is a `slow_consumer`. */
export const MAX_BUFFERED_BYTES = 1024 * 1024
/** A connection that is not `ready` by then gives up with 1013. */
export const HANDSHAKE_TIMEOUT_MS = 10 * SECOND
/** Frames of one connection. At the limit frames are refused; a debt of one more burst closes with 4429. */
export const FRAME_ALLOWANCE: Allowance = { burst: 200, perSecond: 100 }

export interface Ending {
  code: CloseCode
  reason: CloseReason
}

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
  scopes: string[]
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
    this.scopes = claims.scopes ?? []
    this.tokenExpiresAt = claims.expiresAt
    this.address = caller.address
    this.client = caller.client
    this.connectedAt = now
    this.heardAt = now
    this.pingAt = now + HUB_HEARTBEAT_SECONDS * SECOND
    this.frames = fullBucket(FRAME_ALLOWANCE, now)
    socket.connection = this
  }

  /** The token's end or the key's own, whichever comes first. */
  get expiresAt(): Instant {
    return Math.min(this.tokenExpiresAt, this.keyExpiresAt)
  }

  /** Takes one frame from the allowance. */
  frameVerdict(now: Instant): 'pass' | 'refuse' | 'close' {
    const level = refill(this.frames, FRAME_ALLOWANCE, now)
    this.frames.level = level - 1
    if (level >= 1) return 'pass'
    return level > -FRAME_ALLOWANCE.burst ? 'refuse' : 'close'
  }

  accept(standing: Standing): void {
    this.keyName = standing.name
    this.keyExpiresAt = standing.expiresAt ?? Number.POSITIVE_INFINITY
  }

  allows(scope: string): boolean {
    return this.scopes.length === 0 || this.scopes.includes(scope)
  }

  lifetime(now: Instant): { expires_at: string; expires_in: number } {
    const seconds = Math.max(0, Math.floor((this.expiresAt - now) / SECOND))
    return { expires_at: toRfc3339(this.expiresAt), expires_in: seconds }
  }

  /** What time alone ends, or null. */
  overdue(now: Instant): Ending | null {
    if (now >= this.expiresAt) return { code: 4408, reason: 'token_expired' }
    const waiting = this.state === 'pending' && now - this.connectedAt >= HANDSHAKE_TIMEOUT_MS
    return waiting ? { code: 1013, reason: 'try_again_later' } : null
  }

  isSilent(now: Instant): boolean {
    return now - this.heardAt >= HUB_SILENCE_SECONDS * SECOND
  }

  /** Whether `token_expiring` is due; true once for each token. */
  noticeExpiry(now: Instant): boolean {
    if (this.noticed || this.expiresAt - now > HUB_EXPIRY_NOTICE_SECONDS * SECOND) return false
    this.noticed = true
    return true
  }

  presence(nodeId: string): PresenceRow {
    const { id, userId, keyId, keyName, address, client, connectedAt } = this
    return { connectionId: id, nodeId, userId, keyId, keyName, address, client, connectedAt }
  }
}

/** Why this key may not hold a connection from this address, or null when it may. */
export function refusalOf(
  standing: Standing | undefined,
  connection: Pick<AgentConnection, 'userId' | 'address'>,
  now: Instant,
): Ending | null {
  if (!standing || standing.standing === 'revoked') return { code: 4410, reason: 'revoked' }
  if (standing.userId !== connection.userId) return { code: 4401, reason: 'invalid_token' }
  if (standing.standing === 'suspended') return { code: 4403, reason: 'account_suspended' }
  if (standing.standing === 'expired' || (standing.expiresAt !== null && standing.expiresAt <= now)) {
    return { code: 4408, reason: 'token_expired' }
  }
  if (standing.allowedNetworks.length > 0 && !networkMatcher(standing.allowedNetworks)(connection.address)) {
    return { code: 4403, reason: 'network_not_allowed' }
  }
  const { scopes } = standing
  if (scopes.length > 0 && !scopes.includes('agent:connect')) {
    return { code: 4403, reason: 'insufficient_scope' }
  }
  return null
}
