import { HUB_MAX_FRAME_BYTES, type ServerFrame } from '@keyway/sdk/protocol'
import { type Clock, type Instant, SECOND } from '../clock.ts'
import type { LiveConnection, RelayNotice } from '../events.ts'
import type { Log } from '../log.ts'
import type { AgentConnection } from './agent-connection.ts'
import { SLOW_CONSUMER } from './close-codes.ts'
import { connectionObject } from './connection-object.ts'
import type { Locations } from './locations.ts'
import type { Presence } from './presence.ts'
import { type Bucket, newBucket, type OwnerLimits, takeWatch, WATCH_ALLOWANCE } from './rate-limits.ts'
import { textFrame } from './text-frame.ts'
import { WatchedUser } from './watched-user.ts'

/** Interval of `watch` queries to all nodes, which also find changes whose notice was lost. */
export const COMPARE_MS = 5 * SECOND
/**
 * How long a watch without watchers is kept up to date. Each new watch gets the whole list of every node, so agents
 * that watch and stop in a loop would otherwise fill the queue of messages between nodes.
 */
export const LINGER_MS = 5 * SECOND
/** How long a new watch waits for the first answers of other nodes. */
const SYNC_TIMEOUT_MS = SECOND
/** The connections of a node that left this many queries unanswered are read from the database. */
const UNANSWERED_QUERIES = 2
/** Maximum number of connections of one user on this node that watch: each gets a frame for every change. */
export const MAX_WATCHERS = 50
/** Sending a list pauses while more bytes than this are unsent. */
const MAX_UNSENT_BYTES = 256 * 1024
const RETRY_MS = 20
/** Maximum number of changes that wait until a list is sent; the connection of a watcher with more is closed. */
const MAX_LATER_CHANGES = 1000
/** Maximum bytes of a `presence` frame besides its connections. */
const FRAME_HEAD_BYTES = 64

interface Watch {
  userId: string
  user: WatchedUser
  /** Watchers, each with the id of its `watch` frame, if it had one. */
  watchers: Map<AgentConnection, string | undefined>
  /** Watchers that have not received the whole list yet. */
  catchingUp: Map<AgentConnection, CatchUp>
  startedAt: Instant
  /** When all nodes that may have connections of the user were last queried for them. */
  comparedAt: Instant
  /** Whether the user's connections on every node are known: reported by the node, or read from the database. */
  isComplete: boolean
  /** When the last watcher left; null while there are any. */
  emptySince: Instant | null
}

/**
 * The frames that are to be sent to a watcher: the rest of the list, which is encoded as the socket drains, and the
 * changes after it. `list` is null until the connections of every node are known.
 */
interface CatchUp {
  list: Iterator<string> | null
  changes: string[]
}

export interface WatchesDeps {
  clock: Clock
  log: Log
  nodeId: string
  presence: Pick<Presence, 'currentPeers' | 'otherNodes' | 'recordedOn'>
  locations: Pick<Locations, 'knownNodes'>
  ownerLimits: Pick<OwnerLimits, 'mayDeliver' | 'chargeDeliveries'>
  /** Sends a notice to a node, which may be this one. */
  notify(nodeId: string, notice: RelayNotice): void
}

/** The connections of this node that watch all connections of their owner, on all nodes. */
export interface Watches {
  /**
   * Handles `watch`: sends all connections, then each change. A repeated `watch` sends all of them again. The agent
   * gets `rate_limited` instead if it or its owner exceeds a limit.
   */
  watch(watcher: AgentConnection, id?: string): void
  unwatch(watcher: AgentConnection): void
  /** Called for every connection that is closed or breaks. */
  remove(watcher: AgentConnection): void
  receive(from: string, notice: Extract<RelayNotice, { op: 'presence' }>): void
  /** Called when a node has no more connections of the user. */
  receiveAbsence(from: string, userId: string): void
  /** Called when notices of other nodes may have been lost: queries the nodes of all watched users. */
  compareAll(): void
  /** Called when nodes may have started or stopped, or a user may have connections on further nodes. */
  updateNodes(): void
  /** Called twice a second. */
  tick(): void
}

export function createWatches(deps: WatchesDeps): Watches {
  const { clock, log, nodeId, presence, locations, ownerLimits, notify } = deps
  /** By the id of the watched user. */
  const watches = new Map<string, Watch>()
  /** The remaining `watch` frames of each connection (`WATCH_ALLOWANCE`). */
  const buckets = new WeakMap<AgentConnection, Bucket>()

  return {
    watch(watcher, id) {
      const now = clock.now()
      const bucket = buckets.get(watcher) ?? newBucket(WATCH_ALLOWANCE, now)
      buckets.set(watcher, bucket)
      if (!takeWatch(bucket, now))
        return watcher.sendError('rate_limited', 'Too many watches; wait ten seconds.', id)
      // Checked for the owner too: otherwise agents that connect, watch and close in a loop would get unlimited lists.
      if (!ownerLimits.mayDeliver(watcher.userId, now))
        return watcher.sendError('rate_limited', 'Too many deliveries of this account; wait a second.', id)
      const watch = watches.get(watcher.userId) ?? createWatch(watcher.userId)
      if (watch.watchers.size < MAX_WATCHERS || watch.watchers.has(watcher)) start(watch, watcher, id)
      else
        watcher.sendError(
          'rate_limited',
          `${MAX_WATCHERS} connections of this account watch here already.`,
          id,
        )
    },
    unwatch: remove,
    remove,
    receive(from, { userId, after, version, changes, part, parts }) {
      const watch = watches.get(userId)
      if (!watch) return notify(from, { op: 'unwatch', userId })
      // One system call sends a watcher all changes of a notice, so that a notice of many new connections costs little.
      const watchers = [...watch.watchers.keys()]
      for (const watcher of watchers) watcher.cork()
      if (after === null) watch.user.replacePart(from, version, changes, part, parts)
      else if (!watch.user.change(from, after, version, changes)) query(watch, from)
      sendListsIfComplete(watch)
      for (const watcher of watchers) watcher.uncork()
    },
    receiveAbsence(from, userId) {
      watches.get(userId)?.user.drop(from, 'lost')
    },
    compareAll() {
      for (const watch of watches.values()) void compare(watch)
    },
    updateNodes() {
      const aliveNodes = [nodeId, ...presence.otherNodes()]
      for (const watch of watches.values()) {
        const reportedNodes = watch.user.nodeIds
        for (const node of reportedNodes) if (!aliveNodes.includes(node)) watch.user.drop(node)
        for (const other of locations.knownNodes(watch.userId))
          if (!reportedNodes.includes(other)) query(watch, other)
      }
    },
    tick() {
      const now = clock.now()
      for (const watch of watches.values()) {
        if (watch.emptySince !== null && now - watch.emptySince >= LINGER_MS) end(watch)
        else if (now - watch.comparedAt >= COMPARE_MS) void compare(watch)
        else if (!watch.isComplete && now - watch.startedAt >= SYNC_TIMEOUT_MS) void readUnanswered(watch, 1)
      }
    },
  }

  function createWatch(userId: string): Watch {
    const now = clock.now()
    const watch: Watch = {
      userId,
      user: new WatchedUser({
        joined: connection => sendChange(watch, { type: 'joined', connection: connectionObject(connection) }),
        left: (connection_id, reason) => sendChange(watch, { type: 'left', connection_id, reason }),
      }),
      watchers: new Map(),
      catchingUp: new Map(),
      startedAt: now,
      comparedAt: now,
      isComplete: false,
      emptySince: null,
    }
    watches.set(userId, watch)
    void compare(watch)
    return watch
  }

  function start(watch: Watch, watcher: AgentConnection, id: string | undefined): void {
    // This node reports its changes in batches; the query makes it report those that are waiting, so that the list
    // includes them. A new watch has just queried all nodes.
    const isNew = watch.watchers.size === 0 && watch.emptySince === null
    if (!isNew) query(watch, nodeId)
    watch.emptySince = null
    watch.watchers.set(watcher, id)
    watch.catchingUp.set(watcher, { list: null, changes: [] })
    sendListsIfComplete(watch)
  }

  function remove(watcher: AgentConnection): void {
    const watch = watches.get(watcher.userId)
    if (!watch?.watchers.delete(watcher)) return
    watch.catchingUp.delete(watcher)
    if (watch.watchers.size === 0) watch.emptySince = clock.now()
  }

  function end(watch: Watch): void {
    watches.delete(watch.userId)
    for (const each of watch.user.nodeIds) notify(each, { op: 'unwatch', userId: watch.userId })
  }

  /**
   * Queries this node and those that may have connections of the user. The connections of nodes that left
   * UNANSWERED_QUERIES queries unanswered are read from the database.
   */
  async function compare(watch: Watch): Promise<void> {
    watch.comparedAt = clock.now()
    for (const watcher of [...watch.watchers.keys()]) endUnlessAllowed(watch, watcher)
    for (const each of [nodeId, ...locations.knownNodes(watch.userId)]) query(watch, each)
    await readUnanswered(watch, UNANSWERED_QUERIES)
  }

  function query(watch: Watch, node: string): void {
    notify(node, { op: 'watch', userId: watch.userId, have: watch.user.countQuery(node) })
  }

  /**
   * Reads the connections of silent nodes from the database: of nodes of the previous version, which report nothing,
   * and of nodes that reach the database, but not this node.
   */
  async function readUnanswered(watch: Watch, unanswered: number): Promise<void> {
    const silentNodes = nodesToAwait(watch, unanswered)
    try {
      const rows = silentNodes.length > 0 ? await presence.recordedOn(silentNodes, watch.userId) : []
      for (const node of silentNodes) {
        if (watch.user.unansweredBy(node) < unanswered && presence.currentPeers().includes(node)) continue
        watch.user.replace(
          node,
          rows.filter(row => row.nodeId === node),
        )
      }
    } catch (error) {
      log.warn({ err: error }, 'connections of other nodes could not be read; trying again')
      return
    }
    watch.isComplete ||= nodesToAwait(watch, 1).every(node => silentNodes.includes(node))
    sendListsIfComplete(watch)
  }

  /** Other nodes that do not support `watch` queries, and the user's nodes with at least `minUnanswered` unanswered. */
  function nodesToAwait(watch: Watch, minUnanswered: number): string[] {
    const currentPeers = presence.currentPeers()
    const nodesWithoutNotices = presence.otherNodes().filter(node => !currentPeers.includes(node))
    const knownNodes = locations.knownNodes(watch.userId)
    return [
      ...nodesWithoutNotices,
      ...knownNodes.filter(node => watch.user.unansweredBy(node) >= minUnanswered),
    ]
  }

  function sendListsIfComplete(watch: Watch): void {
    watch.isComplete ||= nodesToAwait(watch, 1).length === 0 && watch.user.unansweredBy(nodeId) === 0
    if (!watch.isComplete) return
    for (const [watcher, catchUp] of [...watch.catchingUp]) {
      if (catchUp.list) continue
      catchUp.list = presenceFrames(watch.user.connections)
      sendList(watch, watcher, catchUp)
    }
  }

  /** Sends the list and the changes after it, as far as the limit of unsent bytes allows, and the rest later. */
  function sendList(watch: Watch, watcher: AgentConnection, catchUp: CatchUp): void {
    if (watch.catchingUp.get(watcher) !== catchUp) return // The watcher is gone, or has sent another `watch`.
    while (watcher.unsentBytes < MAX_UNSENT_BYTES) {
      const next = catchUp.list!.next()
      const frame = next.done ? catchUp.changes.shift() : next.value
      if (frame === undefined) return void watch.catchingUp.delete(watcher)
      ownerLimits.chargeDeliveries(watch.userId, 1, frame.length, clock.now())
      watcher.write(frame)
    }
    setTimeout(sendList, RETRY_MS, watch, watcher, catchUp).unref()
  }

  function sendChange(watch: Watch, frame: ServerFrame): void {
    const text = JSON.stringify(frame)
    const encodedFrame = textFrame(text)
    for (const watcher of [...watch.watchers.keys()]) {
      if (!endUnlessAllowed(watch, watcher)) continue
      const catchUp = watch.catchingUp.get(watcher)
      if (!catchUp) watcher.writeFrame(encodedFrame)
      else if (catchUp.list && catchUp.changes.push(text) > MAX_LATER_CHANGES) watcher.close(SLOW_CONSUMER)
    }
    ownerLimits.chargeDeliveries(watch.userId, watch.watchers.size, text.length, clock.now())
  }

  /** Ends the watch and returns false if a renewal has replaced the watcher's token by one without `agents:read`. */
  function endUnlessAllowed(watch: Watch, watcher: AgentConnection): boolean {
    if (watcher.allows('agents:read')) return true
    const id = watch.watchers.get(watcher)
    remove(watcher)
    watcher.sendError('insufficient_scope', 'The watch ended: the key lacks the scope agents:read.', id)
    return false
  }
}

/** Encodes all connections as frames of at most 64 KiB; all but the last have `more`. */
export function* presenceFrames(connections: readonly LiveConnection[]): Generator<string, void> {
  let texts: string[] = []
  let bytes = FRAME_HEAD_BYTES
  for (const connection of connections) {
    const text = JSON.stringify(connectionObject(connection))
    const length = Buffer.byteLength(text) + 1
    if (bytes + length > HUB_MAX_FRAME_BYTES) {
      yield `{"type":"presence","connections":[${texts.join(',')}],"more":true}`
      texts = []
      bytes = FRAME_HEAD_BYTES
    }
    texts.push(text)
    bytes += length
  }
  yield `{"type":"presence","connections":[${texts.join(',')}]}`
}
