import type { AgentFrame, CloseCode, CloseReason, FrameErrorCode, ServerFrame } from '@keyway/sdk/protocol'
import { HUB_HEARTBEAT_SECONDS } from '@keyway/sdk/protocol'
import { type RawData, WebSocket } from 'ws'
import { type Clock, type Instant, SECOND } from '../clock.ts'
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
import { encodeMessage, type ReadFrame, readFrame } from './frames.ts'
import type { HubQuestions, TokenClaims } from './hub-questions.ts'
import type { Presence } from './presence.ts'
import type { Registry } from './registry.ts'
import type { Relay } from './relay.ts'
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
  /** Writes a message frame to the user's connections on this node; returns to how many. */
  write(userId: string, to: string, frame: Buffer, exceptId: string | null): number
  /** The same on all nodes. */
  deliver(userId: string, to: string, frame: Buffer, exceptId: string | null): Promise<number>
  /** Closes connections of the user on this node that `target` names (an id or a key's id); returns how many. */
  disconnect(userId: string, target: string): number
  end(connection: AgentConnection, code: CloseCode, reason: CloseReason): void
  announceDraining(closeInSeconds: number): void
  tick(): void
  /** Every socket that is not closed yet, those on their way out included. */
  readonly sockets: ReadonlySet<HubSocket>
}

export function createConnections(deps: ConnectionsDeps): Connections {
  const { clock, log, registry, standings, presence, relay, sweep } = deps
  const sockets = new Set<HubSocket>()
  const renewals = createRenewals({ ...deps, send, sendError, end })

  return {
    take,
    recheck,
    write,
    deliver,
    disconnect,
    end,
    announceDraining(closeInSeconds) {
      const frame: ServerFrame = { type: 'draining', close_in_seconds: closeInSeconds }
      for (const connection of [...registry.byId.values()]) {
        if (connection.state === 'open') send(connection, frame)
      }
    },
    tick,
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
    send(connection, connection.ready(now))
    presence.came(connection)
    noticeExpiry(connection, now)
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
    else void relayMessage(connection, frame)
  }

  async function relayMessage(
    sender: AgentConnection,
    { id, to, data }: { id: string; to: string; data: Parameters<typeof encodeMessage>[0]['data'] },
  ): Promise<void> {
    const frame = encodeMessage({ id, from: sender.id, from_key_id: sender.keyId, data })
    if (!sender.allows('agents:send')) {
      sendError(sender, 'insufficient_scope', 'The key lacks the scope agents:send.', id)
    } else if (!frame) {
      sendError(sender, 'invalid_frame', 'data: is too long or too deep for a frame of 64 KiB.', id)
    } else if (!registry.mayDeliver(sender.userId, clock.now())) {
      sendError(sender, 'rate_limited', 'Too many deliveries of this account; wait a second.', id)
    } else {
      const delivered = await deliver(sender.userId, to, frame, sender.id)
      send(sender, { type: 'sent', id, delivered })
    }
  }

  async function deliver(
    userId: string,
    to: string,
    frame: Buffer,
    exceptId: string | null,
  ): Promise<number> {
    const here = write(userId, to, frame, exceptId)
    // A connection has one place: found here, no other node has it.
    if (to === exceptId || (here > 0 && registry.byId.has(to))) return here
    return here + (await relay.ask({ op: 'deliver', userId, to, frame: frame.toString() }))
  }

  function write(userId: string, to: string, frame: Buffer, exceptId: string | null): number {
    const targets = registry.targets(userId, to, exceptId)
    let written = 0
    for (const target of targets) if (writeBytes(target, frame)) written++
    registry.charge(userId, Math.max(1, targets.length), frame.length)
    return written
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

  /** One pass over all connections instead of a timer each. */
  function tick(): void {
    const now = clock.now()
    const blind = !sweep.canSee(now)
    for (const connection of registry.byId.values()) {
      const overdue = connection.overdue(now)
      if (overdue) end(connection, overdue.code, overdue.reason)
      else if (blind) end(connection, 1013, 'try_again_later')
      else if (connection.isSilent(now)) drop(connection)
      else keep(connection, now)
    }
  }

  function drop(connection: AgentConnection): void {
    forget(connection)
    connection.socket.terminate() // nobody is there to answer a close frame
  }

  function keep(connection: AgentConnection, now: number): void {
    if (connection.state === 'open') noticeExpiry(connection, now)
    if (now < connection.pingAt) return
    connection.pingAt = now + HUB_HEARTBEAT_SECONDS * SECOND
    if (connection.socket.bufferedAmount <= MAX_BUFFERED_BYTES) connection.socket.ping()
  }

  function noticeExpiry(connection: AgentConnection, now: number): void {
    if (connection.noticeExpiry(now))
      send(connection, { type: 'token_expiring', ...connection.lifetime(now) })
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
