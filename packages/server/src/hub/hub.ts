import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { HUB_MAX_FRAME_BYTES, HUB_PROTOCOL, type Json } from '@keyway/sdk/protocol'
import { WebSocketServer } from 'ws'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { Event, Events } from '../events.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Caller } from '../network.ts'
import { HubSocket } from './agent-connection.ts'
import { createConnections } from './connections.ts'
import { encodeMessage } from './frames.ts'
import {
  badToken,
  originProblem,
  type Refusal,
  readCredential,
  refusal,
  refuse,
  upgradeProblem,
} from './handshake.ts'
import { HandshakeLimits, MAX_PENDING_HANDSHAKES } from './handshake-limits.ts'
import type { HubQuestions, TokenClaims } from './hub-questions.ts'
import { createPresence } from './presence.ts'
import { NODE_HEARTBEAT_MS, type PresenceRow, type PresenceStore } from './presence-store.ts'
import { Registry } from './registry.ts'
import { createRelay } from './relay.ts'
import { createStandingQuestions } from './standing-questions.ts'
import { createSweep } from './sweep.ts'

const TICK_MS = 500
const SWEEP_MS = SECOND
/** How long a peer may take to answer a close frame before its socket is cut. */
const CLOSE_TIMEOUT_MS = 3 * SECOND
const MAX_FRAGMENTS = 1024
/** Of a drain, kept for the closing handshakes. */
const CLOSING_MS = SECOND

export interface HubHealth {
  /** False: this node cannot confirm revocations now, and holds nobody. */
  seesDatabase: boolean
  lastLook: Instant | null
  connections: number
  draining: boolean
  /** Other nodes that are alive. */
  otherNodes: number
}

export interface HubDeps {
  clock: Clock
  questions: HubQuestions
  events: Events
  presence: PresenceStore
  log: Log
  /** Base address without a trailing slash; its origin may open the hub from a browser. */
  publicUrl: string
  corsOrigins: readonly string[]
  /** Live connections per user on this node. */
  maxConnectionsPerUser: number
  /** A UUID of this process; a new one at every start. */
  nodeId: string
  version: string
  /** Milliseconds between ticks; null: the test ticks. */
  tickMs?: number | null
}

export interface Hub {
  /** Takes over the socket of a request to `/hub` that asks for an upgrade. Never throws or rejects. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller): void
  /** Live connections of a user on all nodes, newest first. */
  connections(userId: string): Promise<PresenceRow[]>
  /**
   * Sends as `api` to a connection, to all of a key's, or to "all" of the user's. Returns to how many it was
   * written; null when nothing of that name is there.
   *
   * @throws KeywayError `rate_limited`, `payload_too_large`
   */
  sendTo(userId: string, to: string, data: Json): Promise<number | null>
  /** Closes a connection of the user, or all of a key's, with 1001. False when there is none. */
  disconnect(userId: string, target: string): Promise<boolean>
  readonly connectionCount: number
  health(): HubHealth
  /** First look at the database, then timers. A database that is away does not stop it: the hub waits for it. */
  start(): Promise<void>
  /** Tells every agent to go elsewhere, takes none, and closes those that stayed with 1012 in time. */
  drain(deadlineMs: number): Promise<void>
  /** Cuts what is left and takes this node out of presence. */
  close(): Promise<void>
  /** What time brings: expiry, notices, heartbeats. Runs by itself twice a second. */
  tick(): void
  /** One look for endings; runs by itself every second. */
  sweep(): Promise<void>
}

export function createHub(deps: HubDeps): Hub {
  const { clock, questions, events, log, publicUrl, nodeId } = deps
  const origins = new Set([new URL(publicUrl).origin, ...deps.corsOrigins])
  const registry = new Registry()
  const limits = new HandshakeLimits()
  const standings = createStandingQuestions(questions)
  const presence = createPresence({ ...deps, registry })
  const relay = createRelay({ events, presence, log, nodeId, carryOut })
  const sweeper = createSweep({ questions, clock, registry, recheck: keyIds => agents.recheck(keyIds) })
  const agents = createConnections({ ...deps, registry, standings, presence, relay, sweep: sweeper })
  // Named first: the types of ws do not know closeTimeout yet.
  const options = {
    noServer: true,
    WebSocket: HubSocket,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: HUB_MAX_FRAME_BYTES,
    maxFragments: MAX_FRAGMENTS,
    closeTimeout: CLOSE_TIMEOUT_MS,
    handleProtocols: (offered: Set<string>) => (offered.has(HUB_PROTOCOL) ? HUB_PROTOCOL : false),
  }
  const server = new WebSocketServer<typeof HubSocket>(options)
  server.on('wsClientError', (error, socket) =>
    answer(socket, refusal(400, 'invalid_request', `${error.message}.`)),
  )
  const timers: NodeJS.Timeout[] = []
  let unsubscribe = () => {}
  let draining = false

  return {
    handleUpgrade(request, socket, head, caller) {
      socket.on('error', destroySocket)
      connect(request, socket, head, caller).catch(error => {
        log.error({ err: error }, 'a handshake failed')
        socket.destroy()
      })
    },
    connections: userId => presence.list(userId),
    async sendTo(userId, to, data) {
      const frame = encodeMessage({ id: newId(clock.now()), from: 'api', from_key_id: null, data })
      if (!frame) throw new KeywayError('payload_too_large', 'The message is longer than 64 KiB.')
      if (!registry.mayDeliver(userId, clock.now())) {
        throw new KeywayError('rate_limited', 'Too many messages to this account; wait a second.', {
          retryAfter: 1,
        })
      }
      const delivered = await agents.deliver(userId, to, frame, null)
      if (delivered > 0) return delivered
      const rows = await presence.list(userId)
      return rows.some(row => to === 'all' || row.connectionId === to || row.keyId === to) ? 0 : null
    },
    async disconnect(userId, target) {
      const here = agents.disconnect(userId, target)
      const elsewhere = await relay.ask({ op: 'disconnect', userId, target })
      return here + elsewhere > 0
    },
    get connectionCount() {
      return registry.byId.size
    },
    health: () => ({
      seesDatabase: sweeper.canSee(clock.now()),
      lastLook: sweeper.lastLook,
      connections: registry.byId.size,
      draining,
      otherNodes: presence.others().length,
    }),
    async start() {
      unsubscribe = events.subscribe(hear)
      await Promise.all([sweeper.look(), presence.heartbeat()])
      relay.greet()
      every(deps.tickMs === undefined ? TICK_MS : deps.tickMs, agents.tick)
      every(SWEEP_MS, () => void sweeper.look())
      every(NODE_HEARTBEAT_MS, () => void presence.heartbeat())
    },
    async drain(deadlineMs) {
      draining = true
      const closing = Math.min(CLOSING_MS, deadlineMs / 2)
      agents.announceDraining(Math.max(0, Math.floor((deadlineMs - closing) / SECOND)))
      await untilEmpty(registry.byId, deadlineMs - closing)
      for (const connection of [...registry.byId.values()]) agents.end(connection, 1012, 'restarting')
      await untilEmpty(agents.sockets, closing)
    },
    async close() {
      draining = true
      unsubscribe()
      for (const timer of timers) clearInterval(timer)
      for (const socket of [...agents.sockets]) socket.terminate()
      standings.stop()
      relay.stop()
      await presence.leave()
    },
    tick: agents.tick,
    sweep: () => sweeper.look(),
  }

  function every(ms: number | null, work: () => void): void {
    if (ms !== null) timers.push(setInterval(work, ms).unref())
  }

  function hear(event: Event): void {
    if (event.type === 'hub.relay') relay.hear(event)
    else if (event.type === 'events.gap') agents.recheck(registry.keys())
    else if (event.type === 'api_key.changed' && registry.holdsKey(event.keyId)) agents.recheck([event.keyId])
    else if (event.type === 'user.changed') agents.recheck(registry.keysOf(event.userId))
  }

  function carryOut(order: Parameters<typeof relay.ask>[0]): number {
    if (order.op === 'disconnect') return agents.disconnect(order.userId, order.target)
    if (order.op === 'deliver') return agents.write(order.userId, order.to, Buffer.from(order.frame), null)
    return 0
  }

  function answer(socket: Duplex, refused: Refusal): void {
    refuse(socket, refused, publicUrl, newId(clock.now()))
  }

  async function connect(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    caller: Caller,
  ): Promise<void> {
    const credential =
      upgradeProblem(request) ??
      originProblem(request, origins) ??
      capacityProblem(caller) ??
      readCredential(request)
    if ('status' in credential) {
      answer(socket, credential)
      return
    }
    const claims = await verify(credential.token)
    if (claims) limits.giveBack(caller.network)
    if (claims === 'unknown') answer(socket, unavailable('The token cannot be checked right now.'))
    else if (!claims && credential.way === 'header') answer(socket, badToken())
    else server.handleUpgrade(request, socket, head, accepted => agents.take(accepted, claims, caller))
  }

  function capacityProblem(caller: Caller): Refusal | null {
    if (draining) return unavailable('This node is shutting down; connect again.')
    if (limits.pending >= MAX_PENDING_HANDSHAKES)
      return unavailable('Too many handshakes at once; try again.')
    if (limits.take(caller.network, clock.now())) return null
    return refusal(429, 'rate_limited', 'Too many failed handshakes from this network; wait a second.', {
      'Retry-After': '1',
    })
  }

  async function verify(token: string): Promise<TokenClaims | null | 'unknown'> {
    limits.pending++
    try {
      const claims = await questions.verifyToken(token)
      return claims && claims.expiresAt > clock.now() ? claims : null
    } catch (error) {
      log.warn({ err: error }, 'an agent token could not be checked')
      return 'unknown'
    } finally {
      limits.pending--
    }
  }
}

function destroySocket(this: Duplex): void {
  this.destroy()
}

function unavailable(detail: string): Refusal {
  return refusal(503, 'unavailable', detail, { 'Retry-After': '1' })
}

async function untilEmpty(collection: { readonly size: number }, ms: number): Promise<void> {
  const step = 20
  for (let waited = 0; waited < ms && collection.size > 0; waited += step) await wait(step)
}
