import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Json } from '@keyway/sdk/protocol'
import type { Clock, Instant } from '../clock.ts'
import type { Event, Events } from '../events.ts'
import type { Log } from '../log.ts'
import type { Caller } from '../network.ts'
import { createConnections } from './connections.ts'
import { DatabaseFreshness } from './database-freshness.ts'
import { drain } from './drain.ts'
import { createHandshakes } from './handshake.ts'
import type { HubPorts } from './hub-ports.ts'
import { createKeyStatusLoader } from './key-status-loader.ts'
import { createRelay } from './node-relay.ts'
import { createPresence } from './presence.ts'
import { NODE_HEARTBEAT_MS, type PresenceRow, type PresenceStore } from './presence-store.ts'
import { Registry } from './registry.ts'
import { createRevocations, SWEEP_MS } from './revocations.ts'

const TICK_MS = 500

export interface HubHealth {
  /** False: this node cannot confirm revocations now, and has closed its connections. */
  databaseFresh: boolean
  /** When the last successful poll of the database began. */
  lastPollAt: Instant | null
  connections: number
  draining: boolean
  /** Other nodes that are alive. */
  otherNodes: number
}

export interface HubDeps {
  clock: Clock
  ports: HubPorts
  events: Events
  presence: PresenceStore
  log: Log
  /** Base address without a trailing slash; its origin may open the hub from a browser. */
  publicUrl: string
  corsOrigins: readonly string[]
  /** Live connections per user on this node. */
  maxConnectionsPerUser: number
  /** Bytes that may wait unsent for all connections of a user on this node; 64 MiB unless given. */
  maxUnreadBytesPerUser?: number
  /** A UUID of this process; a new one at every start. */
  nodeId: string
  version: string
  /** Milliseconds between ticks; null: tests call `tick`. */
  tickMs?: number | null
}

export interface Hub {
  /**
   * Takes over the socket of a request to `/hub` that asks for an upgrade. False: the handshake was refused, over HTTP
   * or, for a browser with a bad token, by a close code. Never rejects.
   */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller): Promise<boolean>
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
  /** Polls the database once, then starts the timers. Does not fail if the database is unreachable. */
  start(): Promise<void>
  /** Sends `draining` to every agent, refuses new ones, and closes remaining ones with 1012. */
  drain(deadlineMs: number): Promise<void>
  /** Terminates remaining connections and deregisters this node. */
  close(): Promise<void>
  /** Expiry, notices and heartbeats. Called by a timer twice a second. */
  tick(): void
  /** One sweep for revocations. Called by a timer every second. */
  sweep(): Promise<void>
}

export function createHub(deps: HubDeps): Hub {
  const { clock, ports, events, log, nodeId } = deps
  const registry = new Registry()
  const keyStatuses = createKeyStatusLoader(ports)
  const presence = createPresence({ ...deps, registry })
  const relay = createRelay({ events, presence, log, nodeId, carryOut })
  const freshness = new DatabaseFreshness()
  const revocations = createRevocations({ ports, clock, registry, keyStatuses, freshness })
  const isDraining = () => draining
  const agents = createConnections({ ...deps, registry, keyStatuses, presence, relay, isDraining, freshness })
  const handshakes = createHandshakes({ ...deps, isDraining, take: agents.take })
  const timers: NodeJS.Timeout[] = []
  let unsubscribe = () => {}
  let draining = false

  return {
    handleUpgrade: handshakes.open,
    connections: userId => presence.list(userId),
    sendTo: agents.messages.sendFromApi,
    async disconnect(userId, target) {
      const here = agents.disconnect(userId, target)
      const elsewhere = await relay.ask({ op: 'disconnect', userId, target })
      return here + elsewhere > 0
    },
    get connectionCount() {
      return registry.byId.size
    },
    health: () => ({
      databaseFresh: freshness.isFresh(clock.now()),
      lastPollAt: freshness.lastPollAt,
      connections: registry.byId.size,
      draining,
      otherNodes: presence.others().length,
    }),
    async start() {
      unsubscribe = events.subscribe(receive)
      await Promise.all([revocations.sweep(), presence.heartbeat()])
      // An agent that connects here before the others know of it could miss what they send.
      await relay.greet()
      every(deps.tickMs === undefined ? TICK_MS : deps.tickMs, agents.beat)
      every(SWEEP_MS, () => void revocations.sweep())
      every(NODE_HEARTBEAT_MS, () => void presence.heartbeat())
    },
    async drain(deadlineMs) {
      draining = true
      await drain(registry, agents, deadlineMs)
    },
    async close() {
      draining = true
      unsubscribe()
      for (const timer of timers) clearInterval(timer)
      for (const socket of [...agents.sockets]) socket.terminate()
      keyStatuses.stop()
      relay.stop()
      await presence.leave()
    },
    tick: agents.beat,
    sweep: () => revocations.sweep(),
  }

  function every(ms: number | null, work: () => void): void {
    if (ms !== null) timers.push(setInterval(work, ms).unref())
  }

  function receive(event: Event): void {
    if (event.type === 'hub.relay') relay.receive(event)
    else revocations.receive(event)
  }

  function carryOut(order: Parameters<typeof relay.ask>[0]): number {
    if (order.op === 'disconnect') return agents.disconnect(order.userId, order.target)
    if (order.op === 'deliver')
      return agents.messages.write(order.userId, order.to, Buffer.from(order.frame), null)
    return 0
  }
}
