import type { RawData, WebSocket } from 'ws'
import type { Clock, Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Caller } from '../network.ts'
import { AgentConnection, type ConnectionHost, type HubSocket } from './agent-connection.ts'
import type { ApiRequests } from './api-requests.ts'
import {
  type CloseStatus,
  GOING_AWAY,
  INVALID_TOKEN,
  RATE_LIMITED,
  TOO_MANY_CONNECTIONS,
  TRY_AGAIN_LATER,
} from './close-codes.ts'
import { createConnectionChecks } from './connection-checks.ts'
import type { DatabaseFreshness } from './database-freshness.ts'
import { createFrames } from './frames.ts'
import type { HubPorts, TokenClaims } from './hub-ports.ts'
import type { KeyStatusLoader } from './key-status-loader.ts'
import type { Locations } from './locations.ts'
import { MessageBudget, MessageLog } from './message-log.ts'
import { createMessages, type Messages } from './messages.ts'
import { createMetering } from './metering.ts'
import type { Relay } from './node-relay.ts'
import type { Presence, PresenceRecorder } from './presence.ts'
import type { OwnerLimits } from './rate-limits.ts'
import { createMakeReady } from './ready.ts'
import type { Registry } from './registry.ts'
import { createRenewals } from './renewals.ts'
import type { ResumeRequest } from './resume-token.ts'
import { createResumptions, type Resumptions } from './resumptions.ts'
import type { Watches } from './watches.ts'

/**
 * Close codes (RFC 6455 section 7.4.1) with which an agent ends its connection for good; with any other code the
 * connection can be resumed. NO_STATUS stands for a close frame without a code.
 */
const NORMAL_CLOSURE = 1000
const NO_STATUS = 1005
/** Maximum number of sockets in the closing handshake; above it, refused sockets are terminated at once. */
const MAX_CLOSING_SOCKETS = 5000

export interface ConnectionsDeps {
  clock: Clock
  log: Log
  ports: HubPorts
  /** Maximum live connections per user on this node; further ones are closed with 4429 `too_many_connections`. */
  maxConnectionsPerUser: number
  maxUnsentBytesPerUser?: number
  registry: Registry
  ownerLimits: OwnerLimits
  apiRequests: ApiRequests
  keyStatuses: KeyStatusLoader
  presence: Pick<Presence, 'list'> & PresenceRecorder
  watches: Pick<Watches, 'watch' | 'unwatch' | 'remove'>
  relay: Pick<Relay, 'request' | 'catchUp' | 'publish' | 'currentPeers' | 'responsivePeers' | 'flush'>
  locations: Pick<Locations, 'enter' | 'nodesOf'>
  relayTimeoutMs?: number
  nodeId: string
  /** See `Revocations.recheck`. */
  recheck(keyId: string): void
  isDraining(): boolean
  freshness: Pick<DatabaseFreshness, 'isFresh'>
}

export interface Connections {
  /**
   * Handles an upgraded socket: closes it if it can be refused without a database read, otherwise passes it to
   * ready.ts.
   */
  accept(socket: HubSocket, claims: TokenClaims | null, caller: Caller, resume: ResumeRequest | null): void
  resumptions: Pick<Resumptions, 'receive' | 'endHeld' | 'handOver' | 'leave' | 'stop'>
  messages: Messages
  /** Closes the user's connections on this node by connection id or key id; returns how many. */
  disconnect(userId: string, target: string): number
  /** See `createConnectionChecks`. */
  tick(): void
  /** All sockets that are not closed yet, including those in the closing handshake. */
  readonly sockets: ReadonlySet<HubSocket>
}

export function createConnections(deps: ConnectionsDeps): Connections {
  const { clock, log, registry, ownerLimits, presence, freshness, maxConnectionsPerUser } = deps
  const sockets = new Set<HubSocket>()
  const metering = createMetering(deps.ports.meter)
  const renewals = createRenewals({ ...deps, metering })
  const messages = createMessages(deps)
  const frames = createFrames({ ...deps, renewals, messages })
  const budget = new MessageBudget()
  const host: ConnectionHost = {
    deregister(connection, reason) {
      deps.watches.remove(connection)
      if (connection.state === 'open') presence.remove(connection, reason)
      metering.countConnectedTime(connection, clock.now())
      registry.remove(connection)
    },
    hold(connection) {
      deps.watches.remove(connection)
      presence.remove(connection, 'away')
      metering.countConnectedTime(connection, clock.now())
      resumptions.hold(connection)
    },
    logClose({ id, keyId }, { code, reason }) {
      log.debug({ connectionId: id, keyId, code, reason }, 'closed a connection')
    },
  }

  const resumptions = createResumptions({ ...deps, budget, host, messages })
  const makeReady = createMakeReady({ ...deps, metering, renewals, resumptions })
  const tick = createConnectionChecks({ ...deps, metering, renewals })

  return { accept, resumptions, messages, disconnect, tick, sockets }

  function accept(
    socket: HubSocket,
    claims: TokenClaims | null,
    caller: Caller,
    resume: ResumeRequest | null,
  ): void {
    sockets.add(socket)
    socket.on('error', onError)
    socket.on('close', onClose)
    const now = clock.now()
    const refusal = earlyCloseStatus(claims, now)
    if (!claims || refusal) {
      socket.close(refusal?.code, refusal?.reason)
      if (sockets.size - registry.size > MAX_CLOSING_SOCKETS) socket.terminate()
      return
    }
    const log = new MessageLog(claims.agentId, budget)
    const connection = new AgentConnection(newId(now), socket, claims, caller, now, host, log)
    socket.on('message', onMessage)
    socket.on('ping', onPing)
    socket.on('pong', onPong)
    void makeReady(connection, resume)
  }

  /** The close status of a socket that is refused without loading its key's status, or null. */
  function earlyCloseStatus(claims: TokenClaims | null, now: Instant): CloseStatus | null {
    if (!claims) return INVALID_TOKEN
    if (!freshness.isFresh(now)) return TRY_AGAIN_LATER
    if (!ownerLimits.takeConnect(claims.agentId, now)) return RATE_LIMITED
    const isFull = registry.countOf(claims.agentId) >= maxConnectionsPerUser
    return isFull ? TOO_MANY_CONNECTIONS : null
  }

  function onClose(this: WebSocket, code: number): void {
    const socket = this as HubSocket
    sockets.delete(socket)
    const { connection } = socket
    const isDeliberate = code === NORMAL_CLOSURE || code === NO_STATUS
    if (connection && (isDeliberate || !connection.hold())) connection.end(isDeliberate ? 'closed' : 'lost')
  }

  /** The agent violated RFC 6455 or FRAME_LIMITS; ws closes the socket with 1002, 1007, 1008 or 1009. */
  function onError(this: WebSocket): void {
    liveConnectionOf(this)?.end('closed')
  }

  function onMessage(this: WebSocket, data: RawData, isBinary: boolean): void {
    const connection = liveConnectionOf(this)
    if (connection) frames.receive(connection, data as Buffer, isBinary)
  }

  function onPing(this: WebSocket, data: Buffer): void {
    const connection = liveConnectionOf(this)
    if (connection) frames.receivePing(connection, data)
  }

  function onPong(this: WebSocket): void {
    const connection = liveConnectionOf(this)
    if (connection) frames.receivePong(connection)
  }

  function disconnect(userId: string, target: string): number {
    // `Registry.targets` takes `all` for every connection of the user; a disconnect names a connection or a key.
    if (target === 'all') return 0
    const targets = registry.targets(userId, target, null)
    for (const connection of targets) connection.close(GOING_AWAY)
    return targets.length
  }
}

function liveConnectionOf(socket: WebSocket): AgentConnection | null {
  const { connection } = socket as HubSocket
  return connection && connection.state !== 'closed' ? connection : null
}
