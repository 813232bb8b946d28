import timers from 'node:timers/promises'
import { type Clock, SECOND } from '../clock.ts'
import type { ConnectionIdentity, RelayCommand } from '../events.ts'
import { parseId } from '../ids.ts'
import { type Absence, Absences, PROMISE_MS, RELIANCE_MS } from './absences.ts'
import type { Relay } from './node-relay.ts'
import type { Presence } from './presence.ts'
import type { Registry } from './registry.ts'

/** Maximum number of targets (ids of connections or keys) in one command to another node. */
const BATCH_SIZE = 500
/**
 * A node relies on absences that other nodes reported (absences.ts) only while it has certainly received all events
 * that they published longer ago than this.
 */
const MAX_LAG_MS = 2 * SECOND
/** A node that a notice has not reached after this time lags by more than MAX_LAG_MS, and relies on no absence. */
const SILENCE_MS = MAX_LAG_MS + SECOND

export interface ReceiversDeps {
  clock: Clock
  presence: Pick<Presence, 'peers'>
  registry: Pick<Registry, 'hasTarget'>
  relay: Pick<Relay, 'receivedUntil'>
  /** Sends a command to a node; resolves with 1 if it answered in time, otherwise with 0. */
  sendCommand(nodeId: string, command: Extract<RelayCommand, { op: 'enter' }>): Promise<number>
}

/**
 * Knows which nodes have no connection of an owner with a certain id or key, so that messages to it are not sent there.
 * A node that receives a message for which it has no connection says so in its answer, if it can promise to notify the
 * sending node before it gets one. The sending node relies on the promise only while it receives all events, so it
 * cannot miss the notice.
 */
export interface Receivers {
  /**
   * The given nodes without those that reported that they have no connection that `to` names; all of them while events
   * may arrive late.
   */
  filterNodes(userId: string, to: string, nodes: readonly string[]): readonly string[]
  /** Called when another node reported that it has no connection that `to` names, and promised to notify this node. */
  receiveAbsence(nodeId: string, userId: string, to: string): void
  /** Called when another node notifies this one of its connections with these ids and keys. */
  receiveTargets(nodeId: string, userIds: readonly string[], targets: readonly string[]): void
  /**
   * Promises to notify another node before this node gets a connection that `to` names; false if it has one already or
   * has no room for the promise, or if `to` is not an id.
   */
  promiseNotice(nodeId: string, userId: string, to: string): boolean
  /**
   * Called when a connection was registered, before it is ready, and before a renewal binds it to another key. Resolves
   * once no node relies on the absence of its id or key: each has confirmed the notice, has been silent for too long,
   * or is no longer alive. Undefined if no live node was promised a notice.
   */
  announce(connection: ConnectionIdentity): Promise<void> | undefined
  /** Called when events were lost, which may have included notices of other nodes. */
  clearAbsences(): void
  /** Called every two seconds. */
  tick(): void
}

/** A notice that was promised to another node and is due: this node gets a connection whose id or key is `target`. */
interface PromisedNotice {
  userId: string
  target: string
  /** The reported absence that this notice withdraws. */
  absence: Absence
}

export function createReceivers({ clock, presence, registry, relay, sendCommand }: ReceiversDeps): Receivers {
  /** Absences that other nodes reported. */
  const receivedAbsences = new Absences()
  /** Absences that this node reported, each to the node that it has promised to notify before the absence ends. */
  const ownAbsences = new Absences()
  /** The notices by node id, which are sent at the end of this turn of the event loop. */
  let pendingNotices = new Map<string, PromisedNotice[]>()
  /** Resolved once `announce` need not wait for any of the pending notices any longer; null while none is pending. */
  let noticesAnswered: PromiseWithResolvers<void> | null = null

  return {
    filterNodes(userId, to, nodes) {
      const absences = receivedAbsences.of(userId, to)
      if (absences.size === 0) return nodes
      const now = clock.now()
      if (now - relay.receivedUntil > MAX_LAG_MS) return nodes
      return nodes.filter(id => (absences.get(id)?.until ?? 0) < now)
    },
    receiveAbsence(nodeId, userId, to) {
      receivedAbsences.add(userId, to, nodeId, clock.now() + RELIANCE_MS)
    },
    receiveTargets(nodeId, userIds, targets) {
      for (const userId of userIds)
        for (const target of targets) receivedAbsences.remove(userId, target, nodeId)
    },
    promiseNotice(nodeId, userId, to) {
      if (parseId(to) === null || registry.hasTarget(userId, to)) return false
      return ownAbsences.add(userId, to, nodeId, clock.now() + PROMISE_MS)
    },
    announce: ({ userId, connectionId, keyId }) => {
      const isPromised = [connectionId, keyId].map(target => schedule(userId, target)).includes(true)
      return isPromised ? noticesAnswered!.promise : undefined
    },
    clearAbsences: () => receivedAbsences.clear(),
    tick() {
      const now = clock.now()
      receivedAbsences.prune(now)
      // This node has a connection with the target, but the notice of it was not confirmed: it is sent again.
      ownAbsences.prune(now, (userId, target) => {
        if (registry.hasTarget(userId, target)) schedule(userId, target)
      })
    },
  }

  function nodesRelyingOn(userId: string, target: string): [nodeId: string, Absence][] {
    const absences = ownAbsences.of(userId, target)
    if (absences.size === 0) return []
    const [now, peers] = [clock.now(), presence.peers()]
    return [...absences].filter(([nodeId, { until }]) => until >= now && peers.includes(nodeId))
  }

  /** Schedules the notice of `target`, an id or key, to each node that was promised it; false if none was. */
  function schedule(userId: string, target: string): boolean {
    const nodes = nodesRelyingOn(userId, target)
    for (const [nodeId, absence] of nodes) {
      const notices = pendingNotices.get(nodeId) ?? []
      notices.push({ userId, target, absence })
      pendingNotices.set(nodeId, notices)
    }
    if (nodes.length > 0 && !noticesAnswered) {
      noticesAnswered = Promise.withResolvers()
      setImmediate(() => void sendPending())
    }
    return nodes.length > 0
  }

  async function sendPending(): Promise<void> {
    const [noticesByNode, { resolve }] = [pendingNotices, noticesAnswered!]
    pendingNotices = new Map()
    noticesAnswered = null
    const batches: Promise<void>[] = []
    for (const [nodeId, notices] of noticesByNode)
      for (let start = 0; start < notices.length; start += BATCH_SIZE)
        batches.push(sendBatch(nodeId, notices.slice(start, start + BATCH_SIZE)))
    await Promise.all(batches)
    resolve()
  }

  async function sendBatch(nodeId: string, batch: readonly PromisedNotice[]): Promise<void> {
    const userIds = [...new Set(batch.map(({ userId }) => userId))]
    const targets = [...new Set(batch.map(({ target }) => target))]
    const silenceTimeout = timers.setTimeout(SILENCE_MS, undefined, { ref: false })
    const answerCount = await sendCommand(nodeId, { op: 'enter', userIds, targets })
    if (answerCount === 0) return presence.peers().includes(nodeId) ? silenceTimeout : undefined
    for (const { userId, target, absence } of batch) ownAbsences.remove(userId, target, nodeId, absence)
  }
}
