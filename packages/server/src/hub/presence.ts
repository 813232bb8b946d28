import { type Clock, type Instant, MINUTE } from '../clock.ts'
import type { Events } from '../events.ts'
import type { Log } from '../log.ts'
import type { AgentConnection } from './agent-connection.ts'
import {
  type HubPresence,
  NODE_HEARTBEAT_MS,
  NODE_TIMEOUT_MS,
  type NodeRow,
  type PresenceRow,
  RELAY_VERSION,
} from './presence-store.ts'
import type { Registry } from './registry.ts'

const NODE_ABILITIES = { sealsEvents: true, relayVersion: RELAY_VERSION }

/** Added and removed connections are written in batches, this long after the first change of the batch. */
const BATCH_MS = 200
/** How long a node that has shut down is remembered; after that none of its messages or rows is left. */
const FORGET_NODE_MS = MINUTE

/** Records which connections are ready. */
export interface PresenceRecorder {
  /** Called when a connection is ready, and again after each renewal, which may have bound it to another key. */
  add(connection: AgentConnection): void
  /** Called when a ready connection ends or breaks; agents that watch the user's connections get the `reason`. */
  remove(connection: AgentConnection, reason: string): void
}

export interface Presence {
  add(connection: AgentConnection): void
  remove(connection: AgentConnection): void
  /** Live connections of a user on all nodes, newest first; those of this node are read from memory. */
  list(userId: string): Promise<PresenceRow[]>
  /** Other nodes that were alive at the last heartbeat or have sent a message since, and have not shut down. */
  otherNodes(): readonly string[]
  /**
   * Those of the other nodes that support sealed events (docs/decisions/0007-between-nodes.md); messages are relayed
   * only among these.
   */
  peers(): readonly string[]
  /** Peers that support `RelayNotice` and moves of connections; a new node is included once its version is known. */
  currentPeers(): readonly string[]
  /**
   * Connections of a user on these nodes according to the database, whose rows may be some hundred milliseconds old.
   */
  recordedOn(nodeIds: readonly string[], userId: string): Promise<PresenceRow[]>
  /** Registers a listener, called when other nodes may have considered this one dead. */
  onLapse(listener: () => void): void
  /** Called when a message of another node arrives: it counts as alive, unless it has left. */
  markAlive(nodeId: string, relayVersion?: number): void
  /**
   * Called when a peer has shut down; its row may still exist, and late messages may arrive. Its id is never used
   * again.
   */
  markLeft(nodeId: string): void
  heartbeat(): Promise<void>
  /** The error of the last heartbeat, which records this node and reads the others; null if it succeeded. */
  readonly heartbeatError: unknown
  /** Deregisters this node. Never rejects. */
  deregister(): Promise<void>
}

export function createPresence(deps: {
  presence: HubPresence
  events: Pick<Events, 'expectUnsealed'>
  clock: Clock
  log: Log
  registry: Registry
  nodeId: string
  version: string
}): Presence {
  const { presence, events, clock, log, registry, nodeId, version } = deps
  const startedAt = clock.now()
  /** What the next write to the database adds (rows by connection id) and removes. */
  let addedConnections = new Map<string, PresenceRow>()
  let removedConnectionIds = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let lastWrite = Promise.resolve()
  let peers: string[] = []
  let unsealedNodes: string[] = []
  const currentPeerIds = new Set<string>()
  /** Peers of which a message arrived since the last heartbeat began: its query may have missed their rows. */
  const newcomers = new Set<string>()
  /** When the message `left` of each peer that has shut down arrived, by node id. */
  const leftNodes = new Map<string, Instant>()
  let lastHeartbeatAt: Instant | null = null
  let heartbeatError: unknown = null
  let heartbeatInProgress = Promise.resolve()
  let isDeregistered = false
  let lapseListener = () => {}

  return {
    add(connection) {
      // A resumed connection has the id of the one that it continues, whose removal may be pending.
      removedConnectionIds.delete(connection.id)
      addedConnections.set(connection.id, connection.presenceRow(nodeId))
      schedule()
    },
    remove(connection) {
      // The row is deleted even if this node has not written it yet: the batch that is being written may contain it.
      addedConnections.delete(connection.id)
      removedConnectionIds.add(connection.id)
      schedule()
    },
    async list(userId) {
      const rows = await presence.listOf(userId, clock.now() - NODE_TIMEOUT_MS)
      const rowsOfOtherNodes = rows.filter(row => row.nodeId !== nodeId)
      const rowsOfThisNode = registry.openOf(userId).map(connection => connection.presenceRow(nodeId))
      return [...rowsOfOtherNodes, ...rowsOfThisNode].sort(
        (a, b) => b.connectedAt - a.connectedAt || (a.connectionId < b.connectionId ? 1 : -1),
      )
    },
    otherNodes: () => [...peers, ...unsealedNodes],
    peers: () => peers,
    onLapse(listener) {
      lapseListener = listener
    },
    currentPeers: () => peers.filter(id => currentPeerIds.has(id)),
    async recordedOn(nodeIds, userId) {
      const rows = await presence.listOf(userId, clock.now() - NODE_TIMEOUT_MS)
      return rows.filter(row => nodeIds.includes(row.nodeId))
    },
    markAlive(other, relayVersion = 0) {
      if (other === nodeId || leftNodes.has(other)) return
      newcomers.add(other)
      if (relayVersion >= RELAY_VERSION) currentPeerIds.add(other)
      if (!peers.includes(other)) peers = [...peers, other]
    },
    markLeft(other) {
      leftNodes.set(other, clock.now())
      newcomers.delete(other)
      currentPeerIds.delete(other)
      peers = peers.filter(id => id !== other)
    },
    async heartbeat() {
      try {
        heartbeatInProgress = recordHeartbeat()
        await heartbeatInProgress
        heartbeatError = null
      } catch (error) {
        heartbeatError = error
        log.warn({ err: error }, 'the heartbeat could not be recorded')
      }
    },
    get heartbeatError() {
      return heartbeatError
    },
    async deregister() {
      isDeregistered = true
      clearTimeout(timer)
      // A heartbeat in progress would register the node again.
      await Promise.allSettled([lastWrite, heartbeatInProgress])
      await presence.deregister(nodeId).catch(() => {}) // without heartbeats it counts as dead within 10 s
    },
  }

  async function recordHeartbeat(): Promise<void> {
    if (isDeregistered) return
    const now = clock.now()
    const node: NodeRow = { id: nodeId, startedAt, seenAt: now, version, ...NODE_ABILITIES }
    await presence.heartbeat(node)
    // After so long without a heartbeat another node may have pruned the rows of this node's connections.
    if (lastHeartbeatAt !== null && now - lastHeartbeatAt >= NODE_TIMEOUT_MS) {
      addAll()
      lapseListener()
    }
    lastHeartbeatAt = now
    newcomers.clear()
    const recentRows = await presence.nodes(now - NODE_TIMEOUT_MS)
    for (const [id, at] of leftNodes) if (now - at > FORGET_NODE_MS) leftNodes.delete(id)
    const liveRows = recentRows.filter(({ id }) => !leftNodes.has(id))
    const sealingIds = liveRows.filter(({ sealsEvents }) => sealsEvents).map(({ id }) => id)
    peers = [...new Set([...sealingIds, ...newcomers])].filter(id => id !== nodeId)
    for (const { id, relayVersion } of liveRows) if (relayVersion >= RELAY_VERSION) currentPeerIds.add(id)
    for (const id of currentPeerIds) if (!peers.includes(id)) currentPeerIds.delete(id)
    unsealedNodes = liveRows.filter(({ sealsEvents }) => !sealsEvents).map(({ id }) => id)
    events.expectUnsealed?.(unsealedNodes.length > 0)
  }

  function addAll(): void {
    for (const connection of registry.byId.values()) {
      if (connection.state === 'open') addedConnections.set(connection.id, connection.presenceRow(nodeId))
    }
    schedule()
  }

  function schedule(delay = BATCH_MS): void {
    if (timer || isDeregistered) return
    timer = setTimeout(() => {
      lastWrite = write()
    }, delay)
    timer.unref()
  }

  async function write(): Promise<void> {
    const [addedRows, removedIds] = [addedConnections, removedConnectionIds]
    addedConnections = new Map()
    removedConnectionIds = new Set()
    let delay = 0
    try {
      await presence.record(nodeId, [...addedRows.values()], [...removedIds])
    } catch (error) {
      log.warn({ err: error }, 'live connections could not be recorded; trying again')
      for (const [id, row] of addedRows)
        if (!removedConnectionIds.has(id) && !addedConnections.has(id)) addedConnections.set(id, row)
      for (const id of removedIds) removedConnectionIds.add(id)
      delay = NODE_HEARTBEAT_MS
    }
    timer = undefined
    if (addedConnections.size > 0 || removedConnectionIds.size > 0) schedule(delay || BATCH_MS)
  }
}
