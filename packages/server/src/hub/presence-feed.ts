import { type Clock, type Instant, SECOND } from '../clock.ts'
import type { PresenceChange, RelayNotice } from '../events.ts'
import type { AgentConnection } from './agent-connection.ts'
import type { PresenceRecorder } from './presence.ts'
import type { Registry } from './registry.ts'

/** Changes are sent in batches, this long after the first change of the batch. */
const BATCH_MS = 20
/** Maximum number of changes in one notice, so that a notice stays far below the maximum size of an event. */
const MAX_NOTICE_CHANGES = 500
/** A node that watches repeats its query every few seconds; its watch ends after this long without one. */
const WATCH_LEASE_MS = 30 * SECOND

/** What this node reports about its connections of one user. */
interface Feed {
  userId: string
  /** Increases with each batch of changes; no other batch or feed of this node ever has the same. */
  version: number
  changes: PresenceChange[]
  timer: NodeJS.Timeout | undefined
  /** Ids of the nodes that watch, each with the instant at which its watch ends unless it queries again. */
  watchedBy: Map<string, Instant>
}

/** Notifies nodes that watch a user of changes to that user's connections on this node. */
export interface PresenceFeed extends PresenceRecorder {
  /**
   * Handles a node's `watch`: sends it the changes since the last notice to it, or all connections if `have` is not the
   * version of that notice. Notices to one node arrive in order; a lost one is detected by the version of the next.
   */
  watch(nodeId: string, userId: string, have: number | null): void
  unwatch(nodeId: string, userId: string): void
  stop(): void
}

export function createPresenceFeed(deps: {
  clock: Clock
  registry: Pick<Registry, 'openOf'>
  notify(nodeId: string, notice: RelayNotice): void
}): PresenceFeed {
  const { clock, registry, notify } = deps
  /** By user id. */
  const feeds = new Map<string, Feed>()
  let lastVersion = 0

  return {
    add: connection => record(connection, { joined: connection.details }),
    remove: (connection, reason) => record(connection, { left: connection.id, reason }),
    watch(nodeId, userId, have) {
      const feed = feeds.get(userId) ?? createFeed(userId)
      const versionBefore = feed.version
      feed.watchedBy.set(nodeId, clock.now() + WATCH_LEASE_MS)
      flush(feed)
      if (have === feed.version) sendNotice(feed, [nodeId], have, [])
      else if (have !== versionBefore) sendAll(feed, nodeId)
    },
    unwatch(nodeId, userId) {
      const feed = feeds.get(userId)
      feed?.watchedBy.delete(nodeId)
      if (feed?.watchedBy.size === 0) close(feed)
    },
    stop() {
      for (const feed of feeds.values()) {
        flush(feed)
        close(feed)
      }
    },
  }

  function record({ userId }: AgentConnection, change: PresenceChange): void {
    const feed = feeds.get(userId)
    if (!feed) return
    feed.changes.push(change)
    if (feed.changes.length >= MAX_NOTICE_CHANGES) flush(feed)
    else feed.timer ??= setTimeout(flush, BATCH_MS, feed).unref()
  }

  function flush(feed: Feed): void {
    clearTimeout(feed.timer)
    feed.timer = undefined
    if (feed.changes.length === 0) return
    const { changes, version } = feed
    feed.changes = []
    feed.version = ++lastVersion
    const now = clock.now()
    for (const [nodeId, until] of feed.watchedBy) if (until < now) feed.watchedBy.delete(nodeId)
    if (feed.watchedBy.size === 0) close(feed)
    else sendNotice(feed, [...feed.watchedBy.keys()], version, changes)
  }

  /** Sends a node all connections of the user. The registry has them as of `feed.version`. */
  function sendAll(feed: Feed, nodeId: string): void {
    const allConnections = registry.openOf(feed.userId).map(({ details }) => ({ joined: details }))
    const parts = Math.max(1, Math.ceil(allConnections.length / MAX_NOTICE_CHANGES))
    for (let part = 0; part < parts; part++) {
      const batch = allConnections.slice(part * MAX_NOTICE_CHANGES, (part + 1) * MAX_NOTICE_CHANGES)
      sendNotice(feed, [nodeId], null, batch, part, parts)
    }
  }

  function sendNotice(
    { userId, version }: Feed,
    nodeIds: readonly string[],
    after: number | null,
    changes: PresenceChange[],
    part = 0,
    parts = 1,
  ): void {
    for (const nodeId of nodeIds)
      notify(nodeId, { op: 'presence', userId, after, version, changes, part, parts })
  }

  function createFeed(userId: string): Feed {
    const feed = { userId, version: ++lastVersion, changes: [], timer: undefined, watchedBy: new Map() }
    feeds.set(userId, feed)
    return feed
  }

  function close(feed: Feed): void {
    clearTimeout(feed.timer)
    feeds.delete(feed.userId)
  }
}
