import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Json } from '@keyway/sdk/protocol'
import type { Clock, Instant } from '../clock.ts'
import type { Event, Events, RelayCommand, RelayNotice } from '../events.ts'
import type { Log } from '../log.ts'
import type { Caller } from '../network.ts'
import { ApiRequests } from './api-requests.ts'
import { type Connections, createConnections } from './connections.ts'
import { DatabaseFreshness } from './database-freshness.ts'
import { drain } from './drain.ts'
import { createHandshakes } from './handshake.ts'
import type { HubPorts } from './hub-ports.ts'
import { createKeyStatusLoader } from './key-status-loader.ts'
import type { LocationStore } from './location-store.ts'
import { createLocations } from './locations.ts'
import type { AgentAnswer } from './messages.ts'
import { createRelay } from './node-relay.ts'
import { NO_RECEIVERS, type Outcome } from './numbered-sends.ts'
import { createPresence, type Presence, type PresenceRecorder } from './presence.ts'
import { createPresenceFeed, type PresenceFeed } from './presence-feed.ts'
import { type HubPresence, NODE_HEARTBEAT_MS, type PresenceRow } from './presence-store.ts'
import { OwnerLimits } from './rate-limits.ts'
import { createReceivers } from './receivers.ts'
import { Registry } from './registry.ts'
import { createRevocations, SWEEP_MS } from './revocations.ts'
import { createWatches } from './watches.ts'

const TICK_MS = 500

export interface HubHealth {
  /** Whether this node would notice a revocation now. If not, it closes its connections. */
  databaseFresh: boolean
  /** The error of this node's last heartbeat, which writes to the database; null if it succeeded. */
  writeError: unknown
  /** When the last successful poll of the database began; null if none has succeeded yet. */
  lastPollAt: Instant | null
  connections: number
  draining: boolean
  /** Number of other live nodes. */
  otherNodes: number
}

export interface HubDeps {
  clock: Clock
  ports: HubPorts
  events: Events
  presence: HubPresence
  locations: LocationStore
  log: Log
  /** Base address of the service, without a trailing slash. Pages of its origin may connect to the hub. */
  publicUrl: string
  corsOrigins: readonly string[]
  /** Maximum live connections per user on this node. */
  maxConnectionsPerUser: number
  /** How many deliveries, and how many MiB of them, one user may cause on this node in a second; see rate-limits.ts. */
  deliveriesPerUser?: number
  deliveryMibPerUser?: number
  /** Maximum unsent bytes over all connections of a user on this node; 64 MiB by default. */
  maxUnsentBytesPerUser?: number
  /** A UUID of this process; a new one at every start. */
  nodeId: string
  version: string
  /** Milliseconds to wait for the response of another node; `RELAY_TIMEOUT_MS` by default. */
  relayTimeoutMs?: number
  /** Milliseconds between ticks; null for no timer, since some tests call `tick` themselves. */
  tickMs?: number | null
}

export interface Hub {
  /**
   * Handles the socket of an upgrade request; any path but `/hub` is refused. False if the token is invalid, which is
   * reported over HTTP or by a close code, or if the handshake was refused or failed before the token was found valid.
   * Never rejects.
   */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller): Promise<boolean>
  /** Handles a socket whose handshake was answered: called by `handleUpgrade`, and by tests without a network. */
  accept: Connections['accept']
  /** Live connections of a user on all nodes, newest first. */
  connections(userId: string): Promise<PresenceRow[]>
  /**
   * Sends a message from an HTTP call to the connection or to all connections of the key with the id `to`, or to all
   * of the user if `to` is "all". Null if the user has no such connection, open or broken. `replyTo` is the id of the
   * message that this one answers.
   *
   * @throws KeywayError `rate_limited`, `payload_too_large`
   */
  sendTo(userId: string, to: string, data: Json, replyTo?: string): Promise<Outcome | null>
  /**
   * Sends a request to one connection, as an agent would, and awaits the answer for some seconds. Null if the request
   * reached no connection: the user has none with this id, or `data` is too long or too deep for a frame.
   *
   * @throws KeywayError `rate_limited`
   */
  ask(userId: string, connectionId: string, data: Json): Promise<AgentAnswer | null>
  /**
   * Closes a connection of the user, or all connections of a key, with 1001. False if none was closed: there is none,
   * or no node that has one answered in time.
   */
  disconnect(userId: string, target: string): Promise<boolean>
  readonly connectionCount: number
  health(): HubHealth
  /**
   * Subscribes to events, sweeps once for endings and stores the first heartbeat, announces this node to the others, then
   * starts the timers. Does not fail if the database is unreachable.
   */
  start(): Promise<void>
  /** Refuses new agents, sends `draining` to connected ones, and closes the remaining ones with 1012. */
  drain(timeoutMs: number): Promise<void>
  /** Terminates remaining connections and deregisters this node. */
  stop(): Promise<void>
  /**
   * Checks all connections and watches: closes expired connections, sends expiry notices and pings, and queries all
   * nodes for the connections that agents watch, when that is due. Called by a timer twice a second.
   */
  tick(): void
  /** See `Revocations.sweep`. Called by a timer every second. */
  sweep(): Promise<void>
}

export function createHub(deps: HubDeps): Hub {
  const { clock, ports, events, log, nodeId } = deps
  const registry = new Registry()
  const keyStatuses = createKeyStatusLoader(ports)
  const presence = createPresence({ ...deps, registry })
  const relay = createRelay({
    clock,
    events,
    presence,
    log,
    nodeId,
    execute,
    receiveNotice,
    receiveMove: message => connections.resumptions.receive(message),
    absenceOf(from, { userId, to, number }) {
      if (!locations.has(userId)) return { absent: true }
      if (number === undefined) return {} // Nodes of the previous version send no number.
      return receivers.promiseNotice(from, userId, to) ? { lacks: true } : {}
    },
    receiveAbsence(from, { userId, to }, { absent, lacks }) {
      if (lacks) receivers.receiveAbsence(from, userId, to)
      if (!absent) return
      locations.receiveAbsence(from, userId)
      watches.receiveAbsence(from, userId)
    },
    timeoutMs: deps.relayTimeoutMs,
  })
  const sendCommand = async (to: string, command: RelayCommand) =>
    (await relay.request([to], command)).delivered
  const receivers = createReceivers({ clock, presence, registry, relay, sendCommand })
  const locations = createLocations({
    clock,
    log,
    nodeId,
    store: deps.locations,
    presence,
    receivers,
    hasUser: userId => registry.hasUser(userId),
    sendCommand,
  })
  presence.onLapse(locations.enterAgain)
  const notify = (to: string, notice: RelayNotice) =>
    to === nodeId ? receiveNotice(nodeId, notice) : relay.notify(to, notice)
  const feed = createPresenceFeed({ clock, registry, notify })
  const freshness = new DatabaseFreshness()
  const revocations = createRevocations({ ports, clock, registry, keyStatuses, freshness })
  const isDraining = () => draining
  const { recheck } = revocations
  const ownerLimits = new OwnerLimits(
    deps.maxConnectionsPerUser,
    deps.deliveriesPerUser,
    deps.deliveryMibPerUser,
  )
  const apiRequests = new ApiRequests(nodeId)
  const watches = createWatches({ clock, log, nodeId, presence, locations, ownerLimits, notify })
  const presenceRecorder = createPresenceRecorder(presence, feed)
  const connectionsDeps = {
    ...deps,
    ...{
      registry,
      keyStatuses,
      presence: presenceRecorder,
      watches,
      relay,
      apiRequests,
      locations,
      ownerLimits,
      isDraining,
      freshness,
      recheck,
    },
  }
  const connections = createConnections(connectionsDeps)
  const handshakes = createHandshakes({ ...deps, isDraining, accept: connections.accept })
  const timers: NodeJS.Timeout[] = []
  let unsubscribe = () => {}
  let draining = false

  return {
    handleUpgrade: handshakes.handle,
    accept: connections.accept,
    connections: userId => presence.list(userId),
    sendTo: connections.messages.sendFromApi,
    ask: connections.messages.ask,
    async disconnect(userId, target) {
      const closedHereCount = connections.disconnect(userId, target)
      const nodes = await locations.nodesOf(userId, target)
      const remoteOutcome = await relay.request(nodes, { op: 'disconnect', userId, target })
      return closedHereCount + remoteOutcome.delivered > 0
    },
    get connectionCount() {
      return registry.size
    },
    health: () => ({
      databaseFresh: freshness.isFresh(clock.now()),
      writeError: presence.heartbeatError,
      lastPollAt: freshness.lastPollAt,
      connections: registry.size,
      draining,
      otherNodes: presence.otherNodes().length,
    }),
    async start() {
      unsubscribe = events.subscribe(receive)
      await events.follow?.(nodeId)
      await Promise.all([revocations.sweep(), presence.heartbeat()])
      // An agent that connects before other nodes know this one could miss their messages.
      await relay.announce()
      startTimer(deps.tickMs === undefined ? TICK_MS : deps.tickMs, tick)
      startTimer(SWEEP_MS, () => void revocations.sweep())
      startTimer(NODE_HEARTBEAT_MS, () => void presence.heartbeat().then(updateNodes))
    },
    async drain(timeoutMs) {
      draining = true
      await drain(registry, connections, timeoutMs)
    },
    async stop() {
      draining = true
      unsubscribe()
      for (const timer of timers) clearInterval(timer)
      for (const socket of [...connections.sockets]) socket.terminate()
      connections.resumptions.stop()
      keyStatuses.stop()
      apiRequests.stop()
      locations.stop()
      feed.stop()
      relay.stop()
      await presence.deregister()
    },
    tick,
    sweep: () => revocations.sweep(),
  }

  function updateNodes(): void {
    locations.tick()
    watches.updateNodes()
  }

  function tick(): void {
    connections.tick()
    watches.tick()
  }

  function startTimer(ms: number | null, work: () => void): void {
    if (ms !== null) timers.push(setInterval(work, ms).unref())
  }

  function receive(event: Event): void {
    if (event.type === 'hub.relay') relay.receive(event)
    else revocations.receive(event)
    if (event.type !== 'events.gap') return
    watches.compareAll()
    receivers.clearAbsences()
    connections.resumptions.endHeld()
  }

  function receiveNotice(from: string, notice: RelayNotice): void {
    if (notice.op === 'presence') watches.receive(from, notice)
    else if (notice.op === 'watch') feed.watch(from, notice.userId, notice.have)
    else feed.unwatch(from, notice.userId)
  }

  function execute(command: RelayCommand, from: string, origin: string): Outcome | Promise<Outcome> {
    if (command.op === 'ping') {
      watches.updateNodes() // The ping may come from a node that started just now.
      return NO_RECEIVERS
    }
    if (command.op === 'enter') {
      locations.receiveConnections(from, command.userIds, command.targets ?? [])
      watches.updateNodes()
      return { delivered: 1, held: 0 }
    }
    if (command.op === 'disconnect') {
      return { delivered: connections.disconnect(command.userId, command.target), held: 0 }
    }
    return connections.messages.receive(command, origin)
  }
}

/** Records connections in the database, and notifies the nodes that watch their user. */
function createPresenceRecorder(
  presence: Presence,
  feed: PresenceFeed,
): Pick<Presence, 'list'> & PresenceRecorder {
  return {
    list: presence.list,
    add(connection) {
      presence.add(connection)
      feed.add(connection)
    },
    remove(connection, reason) {
      presence.remove(connection)
      feed.remove(connection, reason)
    },
  }
}
