import type { Clock, Instant } from '../clock.ts'
import type { Events } from '../events.ts'
import type { Log } from '../log.ts'
import type { AgentConnection } from './agent-connection.ts'
import {
  NODE_HEARTBEAT_MS,
  NODE_TIMEOUT_MS,
  type NodeRow,
  type PresenceRow,
  type PresenceStore,
} from './presence-store.ts'
import type { Registry } from './registry.ts'

/** Connections that come and go are written together, this long after the first of them. */
const BATCH_MS = 200

export interface Presence {
  came(connection: AgentConnection): void
  went(connection: AgentConnection): void
  /** Live connections of a user on all nodes, newest first; those of this node from memory. */
  list(userId: string): Promise<PresenceRow[]>
  /** Other nodes that were alive at the last heartbeat. */
  others(): readonly string[]
  /** Those of them that seal what they publish: only with them messages are exchanged. */
  peers(): readonly string[]
  /** A peer sent something, and so is alive. */
  met(nodeId: string): void
  heartbeat(): Promise<void>
  /** Deregisters this node. Never rejects. */
  leave(): Promise<void>
}

export function createPresence(deps: {
  presence: PresenceStore
  events: Pick<Events, 'expectUnsealed'>
  clock: Clock
  log: Log
  registry: Registry
  nodeId: string
  version: string
}): Presence {
  const { presence, events, clock, log, registry, nodeId, version } = deps
  const startedAt = clock.now()
  let added = new Map<string, PresenceRow>()
  let removed = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let writing = Promise.resolve()
  let peers: string[] = []
  let unsealed: string[] = []
  /** Peers that sent something since the last heartbeat began: what it reads may be older than they are. */
  const newcomers = new Set<string>()
  let recordedAt: Instant | null = null
  let left = false

  return {
    came(connection) {
      added.set(connection.id, connection.presence(nodeId))
      schedule()
    },
    went(connection) {
      // A row that was not written yet need not be removed, but a batch under way may hold it: remove in any case.
      added.delete(connection.id)
      removed.add(connection.id)
      schedule()
    },
    async list(userId) {
      const rows = await presence.listOf(userId, clock.now() - NODE_TIMEOUT_MS)
      const elsewhere = rows.filter(row => row.nodeId !== nodeId)
      const here = registry.targets(userId, 'all', null).map(connection => connection.presence(nodeId))
      return [...elsewhere, ...here].sort(
        (a, b) => b.connectedAt - a.connectedAt || (a.connectionId < b.connectionId ? 1 : -1),
      )
    },
    others: () => [...peers, ...unsealed],
    peers: () => peers,
    met(other) {
      if (other === nodeId) return
      newcomers.add(other)
      if (!peers.includes(other)) peers = [...peers, other]
    },
    heartbeat: () => beat().catch(error => log.warn({ err: error }, 'the heartbeat could not be recorded')),
    async leave() {
      left = true
      clearTimeout(timer)
      await writing
      await presence.leave(nodeId).catch(() => {}) // without heartbeats it counts as dead within 10 s
    },
  }

  async function beat(): Promise<void> {
    if (left) return
    const now = clock.now()
    const node: NodeRow = { id: nodeId, startedAt, seenAt: now, version, sealsEvents: true }
    await presence.heartbeat(node)
    // After so long without a heartbeat others may have deregistered this node's connections.
    if (recordedAt !== null && now - recordedAt >= NODE_TIMEOUT_MS) recordAllAgain()
    recordedAt = now
    newcomers.clear()
    const alive = await presence.nodes(now - NODE_TIMEOUT_MS)
    const sealing = alive.filter(({ sealsEvents }) => sealsEvents).map(({ id }) => id)
    peers = [...new Set([...sealing, ...newcomers])].filter(id => id !== nodeId)
    unsealed = alive.filter(({ sealsEvents }) => !sealsEvents).map(({ id }) => id)
    events.expectUnsealed?.(unsealed.length > 0)
  }

  function recordAllAgain(): void {
    for (const connection of registry.byId.values()) {
      if (connection.state === 'open') added.set(connection.id, connection.presence(nodeId))
    }
    schedule()
  }

  function schedule(delay = BATCH_MS): void {
    if (timer || left) return
    timer = setTimeout(() => {
      writing = write()
    }, delay)
    timer.unref()
  }

  async function write(): Promise<void> {
    const [rows, gone] = [added, removed]
    added = new Map()
    removed = new Set()
    let delay = 0
    try {
      await presence.record([...rows.values()], [...gone])
    } catch (error) {
      log.warn({ err: error }, 'live connections could not be recorded; trying again')
      for (const [id, row] of rows) if (!removed.has(id) && !added.has(id)) added.set(id, row)
      for (const id of gone) removed.add(id)
      delay = NODE_HEARTBEAT_MS
    }
    timer = undefined
    if (added.size > 0 || removed.size > 0) schedule(delay || BATCH_MS)
  }
}
