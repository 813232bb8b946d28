import { type Instant, MINUTE } from '../clock.ts'

/** How long a node relies on what another one said, which keeps to it for longer: their clocks may differ. */
export const RELY_MS = MINUTE
export const KEEP_MS = 2 * MINUTE
/** Maximum number of targets; without room, messages go to more nodes than they must. */
const MAX_TARGETS = 10_000

/** That a node has no connection of some id or key. A new one for each time that it says so. */
export interface Absence {
  until: Instant
}

/**
 * For ids and keys of a user's connections, the nodes to which an absence belongs: those that said so, or those that were
 * told. An owner may have at most half of what the others leave free.
 */
export class Absences {
  readonly #byUser = new Map<string, Map<string, Map<string, Absence>>>()
  #total = 0
  readonly #max: number

  constructor(max = MAX_TARGETS) {
    this.#max = max
  }

  /** False if there is no room. */
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

  of(userId: string, target: string): ReadonlyMap<string, Absence> {
    return this.#byUser.get(userId)?.get(target) ?? NONE
  }

  /** Removes the absence of a node; with `absence` only if the node has not said it again since. */
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

  /** Removes what has ended, then calls `visit` for each target that is left. */
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

const NONE: ReadonlyMap<string, Absence> = new Map()
