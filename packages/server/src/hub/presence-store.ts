import type { Instant } from '../clock.ts'
import type { LiveConnection } from '../events.ts'
import type { PageRequest, Slice } from '../paging.ts'

/** A live connection to the hub of any node. */
export interface PresenceRow extends LiveConnection {
  nodeId: string
  userId: string
}

/** A node: a process of the service. Without a heartbeat for `NODE_TIMEOUT_MS` it and its connections count as dead. */
export interface NodeRow {
  id: string
  startedAt: Instant
  seenAt: Instant
  version: string
  /** False for the previous minor version, which cannot seal or open events (docs/decisions/0007-between-nodes.md). */
  sealsEvents: boolean
  /** `RELAY_VERSION` of the node; 0 for the previous minor version. */
  relayVersion: number
}

/**
 * The version of a node's commands and notices. Version 1 added notices about connections (presence-feed.ts), and
 * connections that move (connection-moves.ts).
 */
export const RELAY_VERSION = 1

export const NODE_HEARTBEAT_MS = 2000
export const NODE_TIMEOUT_MS = 10_000

export interface PresenceStore {
  /** Registers a node, or records that it was seen again. */
  heartbeat(node: NodeRow): Promise<void>
  /** Connections of a user on nodes seen since `seenSince`, newest first. */
  listOf(userId: string, seenSince: Instant): Promise<PresenceRow[]>
  /**
   * Connections of all users on nodes seen since `seenSince`, newest first; `at` of a cursor position is the time of
   * connection.
   */
  list(seenSince: Instant, page: PageRequest): Promise<Slice<PresenceRow>>
  /** The connection with this id if it is on a node seen since `seenSince`, otherwise null. */
  find(connectionId: string, seenSince: Instant): Promise<PresenceRow | null>
  /** The number of connections on nodes seen since `seenSince`. */
  countLive(seenSince: Instant): Promise<number>
  /** The number of connections by node id, also of nodes that are no longer alive; nodes without any are absent. */
  countByNode(): Promise<Map<string, number>>
  nodes(seenSince: Instant): Promise<NodeRow[]>
}

/** The transaction of these changes also queues their webhook events (endings/webhook-events.ts). */
export interface PresenceChanges {
  /** Deletes the row of the node, its locations (`LocationStore`) and its connections; returns these connections. */
  deregister(nodeId: string, now: Instant): Promise<PresenceRow[]>
  /**
   * Inserts and removes connections of one node in one batch. A row that exists is replaced, unless another node took
   * the connection over later; rows of other nodes are not removed. Returns the connections that are new, and those
   * that were removed.
   */
  record(
    nodeId: string,
    added: readonly PresenceRow[],
    removedIds: readonly string[],
    now: Instant,
  ): Promise<{ joined: PresenceRow[]; left: PresenceRow[] }>
  /**
   * Removes nodes that were not seen since `notSeenSince`, and connections and locations of nodes without a row: at
   * most `batch` of each. Returns how many rows it removed, and the removed connections.
   */
  prune(notSeenSince: Instant, batch: number, now: Instant): Promise<{ removed: number; left: PresenceRow[] }>
}

/** The store as the hub uses it: each change is a transaction of its own. */
export interface HubPresence extends PresenceStore {
  record(nodeId: string, added: readonly PresenceRow[], removedIds: readonly string[]): Promise<void>
  deregister(nodeId: string): Promise<void>
}
