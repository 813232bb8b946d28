import { type Instant, MINUTE } from '../clock.ts'

/** How long a node relies on the report of another node that it has no connection with a certain id or key. */
export const RELIANCE_MS = MINUTE
/**
 * How long a node that reported an absence keeps its promise to announce the end of the absence to the receiver of the
 * report (`Receivers.promiseNotice`): longer than the receiver relies on the report, since clocks may differ.
 */
export const PROMISE_MS = 2 * MINUTE
/**
 * Maximum number of targets, which are ids of connections or keys. Absences beyond it are not stored, and messages then
 * go to more nodes than necessary.
 */
const MAX_TARGETS = 10_000

/**
 * A report that a node has no connection with a certain id or of a certain key. Each report is a new object, so that
 * `remove` does not remove a later report of the same node.
 */
export interface Absence {
  until: Instant
}

/**
 * Reported absences of connections, by user and target (the id of a connection or key). A user may have at most half as
 * many targets as the other users leave room for.
 */
export class Absences {
  /** By user id, then by target, then by the id of the node. */
  readonly #byUser = new Map<string, Map<string, Map<string, Absence>>>()
  #total = 0
  readonly #max: number

  constructor(max = MAX_TARGETS) {
    this.#max = max
  }

  /** Stores or extends an absence. False if the user's share of the targets is used up. */
  add(userId: string, target: string, nodeId: string, until: Instant): boolean {
    const targets = this.#byUser.get(userId) ?? new Map<string, Map<string, Absence>>()
    const nodes = targets.get(target)
    if (nodes) {
      nodes.set(nodeId, { until })
      return true
    }
    if (targets.size >= (this.#max - this.#total + targets.size) / 2) return false
    this.#total++
    this.#byUser.set(userId, targets.set(target, new Map([[nodeId, { until }]])))
    return true
  }

  /** By node id. */
  of(userId: string, target: string): ReadonlyMap<string, Absence> {
    return this.#byUser.get(userId)?.get(target) ?? NO_ABSENCES
  }

  /** Removes the absence of a node. If `absence` is given, a later one of the same node is kept. */
  remove(userId: string, target: string, nodeId: string, absence?: Absence): void {
    const nodes = this.#byUser.get(userId)?.get(target)
    if (!nodes || (absence && nodes.get(nodeId) !== absence)) return
    nodes.delete(nodeId)
    if (nodes.size === 0) this.#removeTarget(userId, target)
  }

  clear(): void {
    this.#byUser.clear()
    this.#total = 0
  }

  /** Removes expired absences, then calls `visit` for each remaining target. */
  prune(now: Instant, visit: (userId: string, target: string) => void = () => {}): void {
    for (const [userId, targets] of this.#byUser) {
      for (const [target, nodes] of targets) {
        for (const [nodeId, { until }] of nodes) if (until < now) nodes.delete(nodeId)
        if (nodes.size === 0) this.#removeTarget(userId, target)
        else visit(userId, target)
      }
    }
  }

  #removeTarget(userId: string, target: string): void {
    const targets = this.#byUser.get(userId)!
    targets.delete(target)
    this.#total--
    if (targets.size === 0) this.#byUser.delete(userId)
  }
}

const NO_ABSENCES: ReadonlyMap<string, Absence> = new Map()
