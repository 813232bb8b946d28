import type { AgentFrame, CloseCode, CloseReason, FrameErrorCode, ServerFrame } from '@keyway/sdk/protocol'
import { type RawData, WebSocket } from 'ws'
import type { Clock, Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Caller } from '../network.ts'
import {
  AgentConnection,
  type Ending,
  type HubSocket,
  MAX_BUFFERED_BYTES,
  refusalOf,
} from './agent-connection.ts'
import { createDeadlines, type Deadlines } from './deadlines.ts'
import { createDeliveries, type Deliveries } from './deliveries.ts'
import { type ReadFrame, readFrame, readyFrame } from './frames.ts'
import type { HubQuestions, TokenClaims } from './hub-questions.ts'
import type { Relay } from './node-relay.ts'
import type { Presence } from './presence.ts'
import type { Registry } from './registry.ts'
import { createRenewals } from './renewals.ts'
import type { StandingQuestions } from './standing-questions.ts'
import type { Sweep } from './sweep.ts'

export interface ConnectionsDeps {
  clock: Clock
  log: Log
  questions: HubQuestions
  maxConnectionsPerUser: number
  registry: Registry
  standings: StandingQuestions
  presence: Presence
  relay: Pick<Relay, 'ask'>
  sweep: Sweep
}

export interface Connections {
  /** Accepts an upgraded socket: registers it first, asks about its key second, says `ready` third. */
  take(socket: HubSocket, claims: TokenClaims | null, caller: Caller): void
  /** Asks how keys stand now and ends the connections of those that do not. */
  recheck(keyIds: readonly string[]): void
  write: Deliveries['write']
  deliver: Deliveries['deliver']
  /** Closes connections of the user on this node that `target` names (an id or a key's id); returns how many. */
  disconnect(userId: string, target: string): number
  end(connection: AgentConnection, code: CloseCode, reason: CloseReason): void
  announceDraining(closeInSeconds: number): void
  tick: Deadlines['check']
  /** Every socket that is not closed yet, those on their way out included. */
  readonly sockets: ReadonlySet<HubSocket>
}

export function createConnections(deps: ConnectionsDeps): Connections {
  const { clock, log, registry, standings, presence, sweep } = deps
  const sockets = new Set<HubSocket>()
  const renewals = createRenewals({ ...deps, send, sendError, end })
  const deliveries = createDeliveries({ ...deps, send, sendError, writeBytes })
  const deadlines = createDeadlines({ ...deps, send, end, forget })

  return {
    take,
    recheck,
    write: deliveries.write,
    deliver: deliveries.deliver,
    disconnect,
    end,
    announceDraining(closeInSeconds) {
      const frame: ServerFrame = { type: 'draining', close_in_seconds: closeInSeconds }
      for (const connection of [...registry.byId.values()]) {
        if (connection.state === 'open') send(connection, frame)
      }
    },
    tick: deadlines.check,
    sockets,
  }

  function take(socket: HubSocket, claims: TokenClaims | null, caller: Caller): void {
    sockets.add(socket)
    socket.on('error', ignore) // ws closes by itself, with 1002, 1007 or 1009
    socket.on('close', onClose)
    const now = clock.now()
    const refused = refusalAtDoor(claims, now)
    if (!claims || refused) {
      socket.close(refused?.code, refused?.reason)
      return
    }
    const connection = new AgentConnection(newId(now), socket, claims, caller, now)
    socket.on('message', onMessage)
    socket.on('ping', onPing)
    socket.on('pong', onPong)
    registry.add(connection, now)
    void admit(connection)
  }

  function refusalAtDoor(claims: TokenClaims | null, now: Instant): Ending | null {
    if (!claims) return { code: 4401, reason: 'invalid_token' }
    if (!sweep.canSee(now)) return { code: 1013, reason: 'try_again_later' }
    const full = registry.countOf(claims.agentId) >= deps.maxConnectionsPerUser
    return full ? { code: 4429, reason: 'too_many_connections' } : null
  }

  /** The connection is registered already, so an ending that lands while the question is under way finds it. */
  async function admit(connection: AgentConnection): Promise<void> {
    const standing = await standings.askFor(connection, connection.keyId)
    if (connection.state !== 'pending') return
    const now = clock.now()
    const refused = refusalOf(standing, connection, now) ?? scopeProblem(connection)
    if (refused) {
      end(connection, refused.code, refused.reason)
      return
    }
    connection.accept(standing!)
    connection.state = 'open'
    send(connection, readyFrame(connection, now))
    presence.came(connection)
    deadlines.noticeExpiry(connection, now)
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
    if (connection.frameVerdict(connection.heardAt) === 'close') end(connection, 4429, 'rate_limited')
  }

  function onMessage(this: WebSocket, data: RawData, isBinary: boolean): void {
    const { connection } = this as HubSocket
    if (!connection || connection.state === 'closed') return
    connection.heardAt = clock.now()
    const verdict = connection.frameVerdict(connection.heardAt)
    const read = readFrame(data as Buffer, isBinary)
    if (verdict === 'close') end(connection, 4429, 'rate_limited')
    else if (read.outcome === 'bad_message') end(connection, 4400, 'bad_message')
    else if (verdict === 'refuse')
      sendError(connection, 'rate_limited', 'Too many frames; slow down.', idOf(read))
    else if (read.outcome === 'error') sendError(connection, read.code, read.detail, read.id)
    else obey(connection, read.frame)
  }

  function obey(connection: AgentConnection, frame: AgentFrame): void {
    if (frame.type === 'ping') send(connection, { type: 'pong' })
    else if (connection.state === 'pending') {
      const id = frame.type === 'send' ? frame.id : undefined
      sendError(connection, 'invalid_frame', 'Wait for `ready` first.', id)
    } else if (frame.type === 'token') void renewals.renew(connection, frame.token)
    else void deliveries.relayMessage(connection, frame)
  }

  function disconnect(userId: string, target: string): number {
    if (target === 'all') return 0
    const named = registry.targets(userId, target, null)
    for (const connection of named) end(connection, 1001, 'going_away')
    return named.length
  }

  function recheck(keyIds: readonly string[]): void {
    for (const keyId of keyIds) void recheckKey(keyId)
  }

  async function recheckKey(keyId: string): Promise<void> {
    for (const connection of registry.ofKey(keyId)) connection.askAgain = true
    const standing = await standings.ask(keyId)
    const now = clock.now()
    for (const connection of registry.ofKey(keyId)) {
      if (connection.keyId !== keyId) continue
      const refused = refusalOf(standing, connection, now)
      if (refused) end(connection, refused.code, refused.reason)
      else if (connection.state === 'open') connection.accept(standing!)
    }
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
    if (socket.bufferedAmount > MAX_BUFFERED_BYTES) {
      end(connection, 4429, 'slow_consumer')
      return false
    }
    socket.send(frame, TEXT)
    return true
  }

  /** From here on nothing that the agent says counts, and nobody finds it; the socket follows by itself. */
  function end(connection: AgentConnection, code: CloseCode, reason: CloseReason): void {
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

function scopeProblem(connection: AgentConnection): Ending | null {
  return connection.allows('agent:connect') ? null : { code: 4403, reason: 'insufficient_scope' }
}

function idOf(read: Exclude<ReadFrame, { outcome: 'bad_message' }>): string | undefined {
  if (read.outcome === 'error') return read.id
  return read.frame.type === 'send' ? read.frame.id : undefined
}

const TEXT = { binary: false }

function ignore(): void {}
