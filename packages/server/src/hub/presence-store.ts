import type { Instant } from '../clock.ts'

/** One live connection to the hub, as every node can see it. */
export interface PresenceRow {
  connectionId: string
  nodeId: string
  userId: string
  keyId: string
  keyName: string | null
  address: string
  client: string | null
  connectedAt: Instant
}

/** A process of the service. One without a heartbeat for `NODE_TIMEOUT_MS` is dead, and its connections with it. */
export interface NodeRow {
  id: string
  startedAt: Instant
  seenAt: Instant
  version: string
  /** False for the previous minor version, which neither seals nor opens events (decision 7). */
  sealsEvents: boolean
}

export const NODE_HEARTBEAT_MS = 2000
export const NODE_TIMEOUT_MS = 10_000

export interface PresenceStore {
  /** Registers this node or renews its lease. */
  heartbeat(node: NodeRow): Promise<void>
  /** Deregisters the node and its connections. */
  leave(nodeId: string): Promise<void>
  /** Writes and removes connections of one node in one batch. One that is there already takes its new key. */
  record(added: readonly PresenceRow[], removedIds: readonly string[]): Promise<void>
  /** Connections of a user on nodes seen since `seenSince`, newest first. */
  listOf(userId: string, seenSince: Instant): Promise<PresenceRow[]>
  nodes(seenSince: Instant): Promise<NodeRow[]>
  /** Removes nodes not seen since, and connections of nodes that are not there. Returns how many. */
  prune(notSeenSince: Instant, batch: number): Promise<number>
}
