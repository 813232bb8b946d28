import timers from 'node:timers/promises'
import { type Clock, SECOND } from '../clock.ts'
import type { ConnectionIdentity, RelayCommand } from '../events.ts'
import { parseId } from '../ids.ts'
import { type Absence, Absences, KEEP_MS, RELY_MS } from './absences.ts'
import type { Relay } from './node-relay.ts'
import type { Presence } from './presence.ts'
import type { Registry } from './registry.ts'

/** Maximum number of ids and keys in one command to another node. */
const BATCH_SIZE = 500
/**
 * A node relies on absences only while everything that others published up to this long ago is known to have arrived.
 */
const HEARING_MS = 2 * SECOND
/** A node that has not answered for this long no longer relies on any absence. */
const SILENCE_MS = HEARING_MS + SECOND

export interface ReceiversDeps {
  clock: Clock
  presence: Pick<Presence, 'peers'>
  registry: Pick<Registry, 'names'>
  relay: Pick<Relay, 'heardUntil'>
  /** Sends a command to a node; resolves with 1 if it answered in time. */
  ask(nodeId: string, command: Extract<RelayCommand, { op: 'enter' }>): Promise<number>
}

/**
 * Knows which nodes of an owner have no connection with a certain id or key, so that messages to it are not sent there.
 * A node that receives a message for which it has no connection answers so, and promises to notify the sending node
 * before it gets one. Everything that it publishes after that answer reaches the sending node.
 */
export interface Receivers {
  /** The given nodes without those that have no connection that `to` names. */
  among(userId: string, to: string, nodes: readonly string[]): readonly string[]
  /** Called when another node reported an absence, with the promise to notify this node. */
  lacking(nodeId: string, userId: string, to: string): void
  /** Called when another node notifies this one of its connections with these ids and keys. */
  found(nodeId: string, userIds: readonly string[], targets: readonly string[]): void
  /**
   * Promises to notify another node before this node gets such a connection; false if it has one, or has no room for
   * the promise.
   */
  promise(nodeId: string, userId: string, to: string): boolean
  /**
   * Called when a connection was registered, before it is ready. Resolves once no node relies on its absence: each was
   * notified, or has been silent for too long. Undefined if there is none.
   */
  appear(connection: ConnectionIdentity): Promise<void> | undefined
  /** Called when events were lost, among them perhaps notifications of other nodes. */
  forget(): void
  /** Called every two seconds. */
  tick(): void
}

/** A promise to notify a node that this one has connections with an id or key. */
interface Promised {
  userId: string
  target: string
  absence: Absence
}

export function createReceivers({ clock, presence, registry, relay, ask }: ReceiversDeps): Receivers {
  const lacking = new Absences()
  const promised = new Absences()
  /** What each node is notified of at the end of this turn of the event loop. */
  let appearing = new Map<string, Promised[]>()
  let told: PromiseWithResolvers<void> | null = null

  return {
    among(userId, to, nodes) {
      const absent = lacking.of(userId, to)
      if (absent.size === 0) return nodes
      const now = clock.now()
      if (now - relay.heardUntil > HEARING_MS) return nodes
      return nodes.filter(id => (absent.get(id)?.until ?? 0) < now)
    },
    lacking: (nodeId, userId, to) => void lacking.add(userId, to, nodeId, clock.now() + RELY_MS),
    found(nodeId, userIds, targets) {
      for (const userId of userIds) for (const target of targets) lacking.remove(userId, target, nodeId)
    },
    promise(nodeId, userId, to) {
      if (parseId(to) === null || registry.names(userId, to)) return false
      return promised.add(userId, to, nodeId, clock.now() + KEEP_MS)
    },
    appear: ({ userId, connectionId, keyId }) => {
      const isRelied = [connectionId, keyId].map(target => add(userId, target)).includes(true)
      return isRelied ? told!.promise : undefined
    },
    forget: () => lacking.clear(),
    tick() {
      const now = clock.now()
      lacking.prune(now)
      // Unanswered notifications are sent again.
      promised.prune(now, (userId, target) => void (registry.names(userId, target) && add(userId, target)))
    },
  }

  /** Live nodes that were promised a notification about a target. */
  function reliant(userId: string, target: string): [nodeId: string, Absence][] {
    const absences = promised.of(userId, target)
    if (absences.size === 0) return []
    const [now, peers] = [clock.now(), presence.peers()]
    return [...absences].filter(([nodeId, { until }]) => until >= now && peers.includes(nodeId))
  }

  /** Schedules the notifications that were promised for a target; false if there are none. */
  function add(userId: string, target: string): boolean {
    const nodes = reliant(userId, target)
    for (const [nodeId, absence] of nodes) {
      const some = appearing.get(nodeId) ?? []
      some.push({ userId, target, absence })
      appearing.set(nodeId, some)
    }
    if (nodes.length > 0 && !told) {
      told = Promise.withResolvers()
      setImmediate(() => void tellAll())
    }
    return nodes.length > 0
  }

  async function tellAll(): Promise<void> {
    const [all, { resolve }] = [appearing, told!]
    appearing = new Map()
    told = null
    const telling: Promise<void>[] = []
    for (const [nodeId, some] of all)
      for (let start = 0; start < some.length; start += BATCH_SIZE)
        telling.push(tell(nodeId, some.slice(start, start + BATCH_SIZE)))
    await Promise.all(telling)
    resolve()
  }

  async function tell(nodeId: string, some: readonly Promised[]): Promise<void> {
    const userIds = [...new Set(some.map(({ userId }) => userId))]
    const targets = [...new Set(some.map(({ target }) => target))]
    const silence = timers.setTimeout(SILENCE_MS, undefined, { ref: false })
    const answers = await ask(nodeId, { op: 'enter', userIds, targets })
    if (answers === 0) return presence.peers().includes(nodeId) ? silence : undefined
    for (const { userId, target, absence } of some) promised.remove(userId, target, nodeId, absence)
  }
}
