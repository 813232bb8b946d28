import type { FrameErrorCode, ServerFrame } from '@keyway/sdk/protocol'
import { type RawData, WebSocket } from 'ws'
import type { Clock, Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Caller } from '../network.ts'
import { AgentConnection, type HubSocket } from './agent-connection.ts'
import {
  type Ending,
  GOING_AWAY,
  INVALID_TOKEN,
  RATE_LIMITED,
  SLOW_CONSUMER,
  TOO_MANY_CONNECTIONS,
  TRY_AGAIN_LATER,
} from './close-codes.ts'
import type { DatabaseSight } from './database-sight.ts'
import { createReceiveFrame } from './frame-handlers.ts'
import { createHeartbeat } from './heartbeat.ts'
import type { HubQuestions, TokenClaims } from './hub-questions.ts'
import { createMessages, type Messages } from './messages.ts'
import type { Relay } from './node-relay.ts'
import type { Presence } from './presence.ts'
import { frameVerdict } from './rate-limits.ts'
import { createMakeReady } from './ready.ts'
import type { Registry } from './registry.ts'
import { createRenewals } from './renewals.ts'
import type { StandingQuestions } from './standing-questions.ts'

export interface ConnectionsDeps {
  clock: Clock
  log: Log
  questions: HubQuestions
  /** Live connections per user on this node; one more is closed with 4429 `too_many_connections`. */
  maxConnectionsPerUser: number
  registry: Registry
  standings: StandingQuestions
  presence: Presence
  relay: Pick<Relay, 'ask' | 'catchUp'>
  isDraining(): boolean
  sight: Pick<DatabaseSight, 'canSee'>
}

export interface Connections {
  /** Takes an upgraded socket: refuses it at once by what this node knows itself, or leaves it to ready.ts. */
  take(socket: HubSocket, claims: TokenClaims | null, caller: Caller): void
  messages: Messages
  /** Closes connections of the user on this node that `target` names (an id or a key's id); returns how many. */
  disconnect(userId: string, target: string): number
  end(connection: AgentConnection, ending: Ending): void
  send(connection: AgentConnection, frame: ServerFrame): void
  /** One pass of what time brings to all of them. */
  beat(): void
  /** Every socket that is not closed yet, those on their way out included. */
  readonly sockets: ReadonlySet<HubSocket>
}

export function createConnections(deps: ConnectionsDeps): Connections {
  const { clock, log, registry, presence, sight, maxConnectionsPerUser } = deps
  const sockets = new Set<HubSocket>()
  const renewals = createRenewals({ ...deps, send, sendError })
  const messages = createMessages({ ...deps, send, sendError, writeBytes })
  const receive = createReceiveFrame({ ...deps, renewals, messages, send, sendError, end })
  const makeReady = createMakeReady({ ...deps, renewals, send, end })
  const beat = createHeartbeat({ ...deps, renewals, end, forget })

  return { take, messages, disconnect, end, send, beat, sockets }

  function take(socket: HubSocket, claims: TokenClaims | null, caller: Caller): void {
    sockets.add(socket)
    socket.on('error', ignore) // ws closes by itself, with 1002, 1007 or 1009
    socket.on('close', onClose)
    const now = clock.now()
    const refused = refusalOf(claims, now)
    if (!claims || refused) {
      socket.close(refused?.code, refused?.reason)
      return
    }
    const connection = new AgentConnection(newId(now), socket, claims, caller, now)
    socket.on('message', onMessage)
    socket.on('ping', onPing)
    socket.on('pong', onPong)
    void makeReady(connection)
  }

  /** Why a socket is closed as it comes; null when its key is to be asked about. HTTP has answered already. */
  function refusalOf(claims: TokenClaims | null, now: Instant): Ending | null {
    if (!claims) return INVALID_TOKEN
    if (!sight.canSee(now)) return TRY_AGAIN_LATER
    const isFull = registry.countOf(claims.agentId) >= maxConnectionsPerUser
    return isFull ? TOO_MANY_CONNECTIONS : null
  }

  function onClose(this: WebSocket): void {
    const socket = this as HubSocket
    sockets.delete(socket)
    if (socket.connection) forget(socket.connection)
  }

  function onPong(this: WebSocket): void {
    const { connection } = this as HubSocket
    if (connection) connection.heardAt = clock.now()
  }

  function onPing(this: WebSocket): void {
    const { connection } = this as HubSocket
    if (!connection || connection.state === 'closed') return
    connection.heardAt = clock.now()
    if (frameVerdict(connection.frames, connection.heardAt) === 'close') end(connection, RATE_LIMITED)
  }

  function onMessage(this: WebSocket, data: RawData, isBinary: boolean): void {
    const { connection } = this as HubSocket
    if (connection && connection.state !== 'closed') receive(connection, data as Buffer, isBinary)
  }

  function disconnect(userId: string, target: string): number {
    if (target === 'all') return 0
    const named = registry.targets(userId, target, null)
    for (const connection of named) end(connection, GOING_AWAY)
    return named.length
  }

  function send(connection: AgentConnection, frame: ServerFrame): void {
    writeBytes(connection, JSON.stringify(frame))
  }

  function sendError(connection: AgentConnection, code: FrameErrorCode, detail: string, id?: string): void {
    send(connection, { type: 'error', code, detail, ...(id === undefined ? {} : { id }) })
  }

  /** Whether it was written. Whoever reads slower than others send is let go rather than waited for. */
  function writeBytes(connection: AgentConnection, frame: Buffer | string): boolean {
    const { socket } = connection
    if (connection.state === 'closed' || socket.readyState !== WebSocket.OPEN) return false
    if (connection.readsTooSlowly) {
      end(connection, SLOW_CONSUMER)
      return false
    }
    socket.send(frame, TEXT)
    return true
  }

  /** From here on nothing that the agent says counts, and nobody finds it; the socket follows by itself. */
  function end(connection: AgentConnection, { code, reason }: Ending): void {
    if (connection.state === 'closed') return
    forget(connection)
    connection.socket.close(code, reason)
    log.debug({ connectionId: connection.id, keyId: connection.keyId, code, reason }, 'closed a connection')
  }

  function forget(connection: AgentConnection): void {
    if (connection.state === 'closed') return
    if (connection.state === 'open') presence.went(connection)
    connection.state = 'closed'
    registry.remove(connection)
  }
}

const TEXT = { binary: false }

function ignore(): void {}
