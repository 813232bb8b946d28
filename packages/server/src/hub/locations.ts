import { type Clock, type Instant, MINUTE, SECOND } from '../clock.ts'
import type { ConnectionIdentity, RelayCommand } from '../events.ts'
import type { Log } from '../log.ts'
import type { LocationStore } from './location-store.ts'
import type { Presence } from './presence.ts'
import type { Receivers } from './receivers.ts'

/** How long a user stays recorded after the last connection here has closed, since agents reconnect. */
const STAY_MS = 10 * SECOND
/** Maximum number of users that are recorded by one call of the store, and named in one command to another node. */
const BATCH_SIZE = 500
/** A node that was not found alive for this long is forgotten. */
const FORGET_NODE_MS = MINUTE

/** The nodes with connections of one user who has, or recently had, a connection on this node. */
interface UserLocation {
  /** Other nodes that have or had connections of the user. */
  nodes: Set<string>
  /**
   * False until this node is recorded for the user. Before that, nodes that get a connection of the user need not
   * notify this one, so `nodes` may lack some of them.
   */
  isRecorded: boolean
  /** Pending until the user's other nodes have been notified of this one or did not answer in time; null afterwards. */
  nodesNotified: PromiseWithResolvers<void> | null
  /** When the user was found to have no more connections here; null while there are any. */
  emptySince: Instant | null
}

export interface LocationsDeps {
  clock: Clock
  log: Log
  nodeId: string
  store: LocationStore
  presence: Pick<Presence, 'peers' | 'currentPeers'>
  receivers: Pick<Receivers, 'filterNodes' | 'announce' | 'receiveTargets' | 'tick'>
  /** Whether the user has connections on this node, in any state. */
  hasUser(userId: string): boolean
  /** Sends a command to a node; resolves with 1 if it answered in time, otherwise with 0. */
  sendCommand(nodeId: string, command: Extract<RelayCommand, { op: 'enter' }>): Promise<number>
}

/**
 * Knows on which other nodes a user has connections, so that messages go to these nodes only. A node that gets its
 * first connection of a user records itself, then reads which nodes are recorded, and notifies them. If two nodes do so
 * concurrently, the one that is recorded last reads and notifies the other. A node sends `ready` only after all nodes
 * that it notified have answered, so they know every node with a ready connection. A node that does not answer in time
 * is notified again later.
 */
export interface Locations {
  /**
   * Announces a registered connection to the nodes that may send to it. Called before the connection is `ready` or is
   * requested from another node, and before a renewal binds it to another key. Resolves once each of these nodes
   * has answered, has not answered in time, or is not alive; undefined if all of them know of the connection already.
   * Never rejects.
   */
  enter(connection: ConnectionIdentity): Promise<unknown> | undefined
  /**
   * The other nodes to which a message to `to` must be sent: those that may have a connection of the user that `to`
   * selects, and all nodes of the previous version. A promise if the user has no connection here; it rejects if the
   * database does not answer.
   */
  nodesOf(userId: string, to: string): readonly string[] | Promise<readonly string[]>
  /**
   * The other nodes that may have connections of the user, apart from nodes of the previous version: all
   * `currentPeers` if the user has no connection here, or while this node is not recorded for the user.
   */
  knownNodes(userId: string): readonly string[]
  /**
   * Called when another node reports that it has connections of these users. `targets`: the ids, and the key ids, of
   * those connections that it had reported as absent before.
   */
  receiveConnections(nodeId: string, userIds: readonly string[], targets: readonly string[]): void
  /** Called when another node answers that it has no connection of a user. */
  receiveAbsence(nodeId: string, userId: string): void
  /** Whether the user has a connection here, or was found without one less than `STAY_MS` ago. */
  has(userId: string): boolean
  /** Called every two seconds. */
  tick(): void
  /** Records again which users this node has, since other nodes may have considered it dead and pruned its rows. */
  enterAgain(): void
  stop(): void
}

export function createLocations(deps: LocationsDeps): Locations {
  const { clock, log, nodeId, store, presence, receivers, hasUser, sendCommand } = deps
  /** By user id. */
  const userLocations = new Map<string, UserLocation>()
  /** By node id, when the node was last found alive; if it never was, when a stored location first named it. */
  const lastAliveAt = new Map<string, Instant>()
  /**
   * By node id, the ids of the users about whom that node must be notified again, since it was not alive or did not
   * answer in time. An entry lasts until the node answers or is forgotten.
   */
  const unconfirmedUsers = new Map<string, Set<string>>()
  /** Ids of the users that are to be recorded for this node. */
  let enteringUsers = new Set<string>()
  /** Ids of the users whose record for this node is to be removed. */
  let leavingUsers = new Set<string>()
  let isWriting = false
  let isStopped = false

  return {
    enter(connection) {
      const location = userLocations.get(connection.userId) ?? addUser(connection.userId)
      location.emptySince = null
      const nodesNotified = location.nodesNotified?.promise
      const noticesAnswered = receivers.announce(connection)
      return nodesNotified && noticesAnswered
        ? Promise.all([nodesNotified, noticesAnswered])
        : (nodesNotified ?? noticesAnswered)
    },
    nodesOf(userId, to) {
      const location = userLocations.get(userId)
      if (location)
        return receivers.filterNodes(
          userId,
          to,
          location.isRecorded ? peersAmong(location.nodes) : presence.peers(),
        )
      return store.nodesOf(userId).then(ids => receivers.filterNodes(userId, to, peersAmong(new Set(ids))))
    },
    knownNodes(userId) {
      const location = userLocations.get(userId)
      const peers = presence.currentPeers()
      return location?.isRecorded ? peers.filter(id => location.nodes.has(id)) : peers
    },
    receiveConnections(from, userIds, targets) {
      lastAliveAt.set(from, clock.now())
      for (const userId of userIds) userLocations.get(userId)?.nodes.add(from)
      receivers.receiveTargets(from, userIds, targets)
    },
    receiveAbsence(from, userId) {
      userLocations.get(userId)?.nodes.delete(from)
    },
    has: userId => userLocations.has(userId),
    tick,
    enterAgain() {
      for (const userId of userLocations.keys()) enteringUsers.add(userId)
      schedule()
    },
    stop() {
      isStopped = true
    },
  }

  /**
   * The peers among these nodes, and all peers of the previous version, which do not record the users of their
   * connections: each of these may have connections of any user.
   */
  function peersAmong(nodes: ReadonlySet<string>): string[] {
    const currentPeers = presence.currentPeers()
    return presence.peers().filter(id => nodes.has(id) || !currentPeers.includes(id))
  }

  function addUser(userId: string): UserLocation {
    const location = {
      nodes: new Set<string>(),
      isRecorded: false,
      nodesNotified: Promise.withResolvers<void>(),
      emptySince: null,
    }
    userLocations.set(userId, location)
    enteringUsers.add(userId)
    schedule()
    return location
  }

  function schedule(): void {
    if (isWriting || isStopped) return
    isWriting = true
    // Users who get their first connections in the same turn of the event loop are recorded together.
    setImmediate(() => void writeAll())
  }

  /** Writes one batch after the other, since a user may leave and return during a write. */
  async function writeAll(): Promise<void> {
    while (!isStopped && enteringUsers.size + leavingUsers.size > 0) {
      const leavingIds = [...leavingUsers]
      leavingUsers = new Set()
      const [batch, rest] = splitOffBatch([...enteringUsers])
      enteringUsers = new Set(rest)
      try {
        if (leavingIds.length > 0) await store.leave(nodeId, leavingIds)
        if (batch.length > 0) notifyRecordedNodes(batch, await store.enter(nodeId, batch))
      } catch (error) {
        log.warn({ err: error }, 'locations could not be recorded; messages go to all nodes')
        for (const userId of batch) if (userLocations.has(userId)) enteringUsers.add(userId)
        for (const userId of leavingIds) if (!userLocations.has(userId)) leavingUsers.add(userId)
        notifyAllNodes(batch)
        break // The next tick records these and the rest.
      }
    }
    isWriting = false
  }

  function notifyRecordedNodes(userIds: readonly string[], recorded: ReadonlyMap<string, string[]>): void {
    const now = clock.now()
    const usersByNode = new Map<string, string[]>()
    for (const userId of userIds) {
      const location = userLocations.get(userId)
      if (!location) continue
      location.isRecorded = true
      for (const node of recorded.get(userId) ?? []) {
        if (node === nodeId) continue
        location.nodes.add(node)
        if (!lastAliveAt.has(node)) lastAliveAt.set(node, now)
        usersByNode.set(node, [...(usersByNode.get(node) ?? []), userId])
      }
    }
    void announce(usersByNode, userIds)
  }

  /**
   * Tells all nodes that these users have connections here. Used if the locations could not be recorded: then it is
   * unknown which other nodes have connections of these users.
   */
  function notifyAllNodes(userIds: readonly string[]): void {
    void announce(new Map(presence.currentPeers().map(node => [node, [...userIds]])), userIds)
  }

  async function announce(
    usersByNode: ReadonlyMap<string, string[]>,
    userIds: readonly string[],
  ): Promise<void> {
    const peers = presence.peers()
    // Skips nodes that are not alive, since waiting for one would delay all users.
    for (const [node, users] of usersByNode) if (!peers.includes(node)) notifyLater(node, users)
    await Promise.all(
      [...usersByNode].map(([node, users]) => (peers.includes(node) ? notifyNode(node, users) : null)),
    )
    for (const userId of userIds) {
      const location = userLocations.get(userId)
      location?.nodesNotified?.resolve()
      if (location) location.nodesNotified = null
    }
  }

  async function notifyNode(node: string, userIds: readonly string[]): Promise<void> {
    if ((await sendCommand(node, { op: 'enter', userIds })) === 0) notifyLater(node, userIds)
  }

  function notifyLater(node: string, userIds: readonly string[]): void {
    const ids = unconfirmedUsers.get(node) ?? new Set()
    for (const userId of userIds) ids.add(userId)
    unconfirmedUsers.set(node, ids)
  }

  function tick(): void {
    const now = clock.now()
    for (const id of presence.peers()) lastAliveAt.set(id, now)
    for (const [userId, location] of userLocations) {
      for (const node of location.nodes)
        if (now - (lastAliveAt.get(node) ?? 0) > FORGET_NODE_MS) location.nodes.delete(node)
      location.emptySince = hasUser(userId) ? null : (location.emptySince ?? now)
      if (location.emptySince !== null && now - location.emptySince >= STAY_MS) leave(userId)
    }
    for (const [id, at] of lastAliveAt) if (now - at > FORGET_NODE_MS) lastAliveAt.delete(id)
    notifyAgain()
    receivers.tick()
    if (enteringUsers.size + leavingUsers.size > 0) schedule()
  }

  function leave(userId: string): void {
    const location = userLocations.get(userId)
    if (location?.nodesNotified) return
    userLocations.delete(userId)
    enteringUsers.delete(userId)
    leavingUsers.add(userId)
  }

  function notifyAgain(): void {
    const entries = [...unconfirmedUsers]
    unconfirmedUsers.clear()
    for (const [node, users] of entries) {
      const [batch, rest] = splitOffBatch([...users].filter(userId => userLocations.has(userId)))
      const isAlive = presence.peers().includes(node)
      if (isAlive ? rest.length > 0 : lastAliveAt.has(node))
        unconfirmedUsers.set(node, new Set(isAlive ? rest : users))
      if (isAlive && batch.length > 0) void notifyNode(node, batch)
    }
  }
}

function splitOffBatch<Item>(items: readonly Item[]): [Item[], Item[]] {
  return [items.slice(0, BATCH_SIZE), items.slice(BATCH_SIZE)]
}
