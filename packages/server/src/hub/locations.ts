import { type Clock, type Instant, MINUTE, SECOND } from '../clock.ts'
import type { ConnectionIdentity, RelayCommand } from '../events.ts'
import type { Log } from '../log.ts'
import type { LocationStore } from './location-store.ts'
import type { Presence } from './presence.ts'
import type { Receivers } from './receivers.ts'

/** How long a user stays recorded after the last connection here has closed, since agents reconnect. */
const STAY_MS = 10 * SECOND
/** Maximum number of users that one statement records, and one command to another node names. */
const BATCH_SIZE = 500
/** A node that has not been alive for this long is forgotten. */
const FORGET_NODE_MS = MINUTE

interface Place {
  /** Other nodes that have or had connections of the user. */
  nodes: Set<string>
  /**
   * False until this node is recorded for the user, and after a failure to record it: the user may then be on any node.
   */
  isKnown: boolean
  entered: PromiseWithResolvers<void> | null
  emptySince: Instant | null
}

export interface LocationsDeps {
  clock: Clock
  log: Log
  nodeId: string
  store: LocationStore
  presence: Pick<Presence, 'peers' | 'currentPeers'>
  receivers: Pick<Receivers, 'among' | 'appear' | 'found' | 'tick'>
  /** Whether the user has connections on this node, in any state. */
  hasUser(userId: string): boolean
  /** Sends a command to a node; resolves with 1 if it answered in time. */
  ask(nodeId: string, command: Extract<RelayCommand, { op: 'enter' }>): Promise<number>
}

/**
 * Knows on which other nodes a user has connections, so that messages go to these nodes only. A node that gets its
 * first connection of a user records itself, then reads which nodes are recorded, and notifies them. If two nodes do so
 * concurrently, the one that is recorded last reads and notifies the other. A node sends `ready` only after all of them
 * have answered; so a sender knows every node with a ready connection.
 */
export interface Locations {
  /**
   * Called for each connection that was registered, before it is `ready`, and before it belongs to another key.
   * Undefined if all nodes that may send to it already know of it. Never rejects.
   */
  enter(connection: ConnectionIdentity): Promise<unknown> | undefined
  /**
   * The nodes to which a message to `to` must be sent: those of the user that may have a matching connection. A promise
   * if the user has no connection here. Includes all nodes of the previous version.
   */
  nodesOf(userId: string, to: string): readonly string[] | Promise<readonly string[]>
  /** Known other nodes of a user who has a connection here, without those of the previous version. */
  knownNodes(userId: string): readonly string[]
  /** Called when another node reports connections of these users, with these ids and keys. */
  entered(nodeId: string, userIds: readonly string[], targets: readonly string[]): void
  /** Called when another node answers that it has no connection of a user. */
  absent(nodeId: string, userId: string): void
  has(userId: string): boolean
  /** Called every two seconds. */
  tick(): void
  /** Records all users again: other nodes may have considered this one dead. */
  enterAgain(): void
  stop(): void
}

export function createLocations(deps: LocationsDeps): Locations {
  const { clock, log, nodeId, store, presence, receivers, hasUser, ask } = deps
  const places = new Map<string, Place>()
  const lastAlive = new Map<string, Instant>()
  /** Commands that a node has not answered, by node; sent again until it answers or is gone. */
  const unanswered = new Map<string, Set<string>>()
  let entering = new Set<string>()
  let leaving = new Set<string>()
  let isWriting = false
  let isStopped = false

  return {
    enter(connection) {
      const place = places.get(connection.userId) ?? open(connection.userId)
      place.emptySince = null
      const entering = place.entered?.promise
      const appearing = receivers.appear(connection)
      return entering && appearing ? Promise.all([entering, appearing]) : (entering ?? appearing)
    },
    nodesOf(userId, to) {
      const place = places.get(userId)
      if (place) return receivers.among(userId, to, place.isKnown ? among(place.nodes) : presence.peers())
      return store.nodesOf(userId).then(ids => receivers.among(userId, to, among(new Set(ids))))
    },
    knownNodes(userId) {
      const place = places.get(userId)
      const current = presence.currentPeers()
      return place?.isKnown ? current.filter(id => place.nodes.has(id)) : current
    },
    entered(from, userIds, targets) {
      lastAlive.set(from, clock.now())
      for (const userId of userIds) places.get(userId)?.nodes.add(from)
      receivers.found(from, userIds, targets)
    },
    absent(from, userId) {
      places.get(userId)?.nodes.delete(from)
    },
    has: userId => places.has(userId),
    tick,
    enterAgain() {
      for (const userId of places.keys()) entering.add(userId)
      schedule()
    },
    stop() {
      isStopped = true
    },
  }

  /** Nodes of the previous version record nothing, so each of them may have connections of any user. */
  function among(nodes: ReadonlySet<string>): string[] {
    const current = presence.currentPeers()
    return presence.peers().filter(id => nodes.has(id) || !current.includes(id))
  }

  function open(userId: string): Place {
    const place = {
      nodes: new Set<string>(),
      isKnown: false,
      entered: Promise.withResolvers<void>(),
      emptySince: null,
    }
    places.set(userId, place)
    entering.add(userId)
    schedule()
    return place
  }

  function schedule(): void {
    if (isWriting || isStopped) return
    isWriting = true
    // Connections of one turn of the event loop are recorded together.
    setImmediate(() => void writeAll())
  }

  /** Writes sequentially, since a user may leave and return meanwhile. */
  async function writeAll(): Promise<void> {
    while (!isStopped && entering.size + leaving.size > 0) {
      const gone = [...leaving]
      leaving = new Set()
      const [some, later] = split([...entering])
      entering = new Set(later)
      try {
        if (gone.length > 0) await store.leave(nodeId, gone)
        if (some.length > 0) tell(some, await store.enter(nodeId, some))
      } catch (error) {
        log.warn({ err: error }, 'locations could not be recorded; messages go to all nodes')
        tellAll(some)
        break // The next tick records the rest.
      }
    }
    isWriting = false
  }

  function tell(userIds: readonly string[], found: ReadonlyMap<string, string[]>): void {
    const now = clock.now()
    const usersOf = new Map<string, string[]>()
    for (const userId of userIds) {
      const place = places.get(userId)
      if (!place) continue
      place.isKnown = true
      for (const node of found.get(userId) ?? []) {
        if (node === nodeId) continue
        place.nodes.add(node)
        if (!lastAlive.has(node)) lastAlive.set(node, now)
        usersOf.set(node, [...(usersOf.get(node) ?? []), userId])
      }
    }
    void announce(usersOf, userIds)
  }

  /** Notifies every node. Used while nothing can be recorded; all messages then go to every node. */
  function tellAll(userIds: readonly string[]): void {
    void announce(new Map(presence.currentPeers().map(node => [node, [...userIds]])), userIds)
  }

  async function announce(usersOf: ReadonlyMap<string, string[]>, entered: readonly string[]): Promise<void> {
    const peers = presence.peers()
    // Skips nodes that are not alive, since waiting for one would delay all users.
    for (const [node, users] of usersOf) if (!peers.includes(node)) askLater(node, users)
    await Promise.all(
      [...usersOf].map(([node, users]) => (peers.includes(node) ? askOne(node, users) : null)),
    )
    for (const userId of entered) {
      const place = places.get(userId)
      place?.entered?.resolve()
      if (place) place.entered = null
    }
  }

  async function askOne(node: string, userIds: readonly string[]): Promise<void> {
    if ((await ask(node, { op: 'enter', userIds })) === 0) askLater(node, userIds)
  }

  function askLater(node: string, userIds: readonly string[]): void {
    const waiting = unanswered.get(node) ?? new Set()
    for (const userId of userIds) waiting.add(userId)
    unanswered.set(node, waiting)
  }

  function tick(): void {
    const now = clock.now()
    for (const id of presence.peers()) lastAlive.set(id, now)
    for (const [userId, place] of places) {
      for (const node of place.nodes)
        if (now - (lastAlive.get(node) ?? 0) > FORGET_NODE_MS) place.nodes.delete(node)
      place.emptySince = hasUser(userId) ? null : (place.emptySince ?? now)
      if (place.emptySince !== null && now - place.emptySince >= STAY_MS) leave(userId)
      if (!place.isKnown && !place.entered) entering.add(userId)
    }
    for (const [id, at] of lastAlive) if (now - at > FORGET_NODE_MS) lastAlive.delete(id)
    askAgain()
    receivers.tick()
    if (entering.size + leaving.size > 0) schedule()
  }

  function leave(userId: string): void {
    const place = places.get(userId)
    if (place?.entered) return
    places.delete(userId)
    entering.delete(userId)
    leaving.add(userId)
  }

  function askAgain(): void {
    const waiting = [...unanswered]
    unanswered.clear()
    for (const [node, users] of waiting) {
      const [some, later] = split([...users].filter(userId => places.has(userId)))
      const isAlive = presence.peers().includes(node)
      if (isAlive ? later.length > 0 : lastAlive.has(node))
        unanswered.set(node, new Set(isAlive ? later : users))
      if (isAlive && some.length > 0) void askOne(node, some)
    }
  }
}

function split<Item>(items: readonly Item[]): [Item[], Item[]] {
  return [items.slice(0, BATCH_SIZE), items.slice(BATCH_SIZE)]
}
