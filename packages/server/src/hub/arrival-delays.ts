import { SECOND } from '../clock.ts'

/**
 * How long the fastest message of a node counts as usual. Longer than any delay that is noticed, and after two of these
 * periods a node whose machine was suspended has a new usual time.
 */
const PERIOD_MS = 10 * SECOND

interface Usual {
  startedAt: number
  /** The smallest difference between arrival and sending in this period, and in the one before. */
  least: number
  leastBefore: number
}

/**
 * How much later than usual messages of other nodes arrive. Compares monotonic clocks, whose difference is constant:
 * the time that the nodes agree on differs by seconds between nodes that started before and after the database's
 * clock was stepped.
 */
export class ArrivalDelays {
  readonly #usualByNode = new Map<string, Usual>()

  /**
   * The delay of a message beyond that of the node's fastest recent message, in milliseconds.
   *
   * @param sentAt by the monotonic clock of the sending node, `now` by that of this node
   */
  delayOf(nodeId: string, sentAt: number, now: number): number {
    const difference = now - sentAt
    const usual = this.#usualOf(nodeId, now)
    usual.least = Math.min(usual.least, difference)
    return difference - Math.min(usual.least, usual.leastBefore)
  }

  /** Only messages begin a period, so that what was usual before a silence still is when it ends. */
  #usualOf(nodeId: string, now: number): Usual {
    let usual = this.#usualByNode.get(nodeId)
    if (!usual || now - usual.startedAt >= PERIOD_MS) {
      const leastBefore = usual?.least ?? Number.POSITIVE_INFINITY
      usual = { startedAt: now, least: Number.POSITIVE_INFINITY, leastBefore }
      this.#usualByNode.set(nodeId, usual)
    }
    return usual
  }

  /** Forgets nodes that are no more. */
  retain(nodeIds: readonly string[]): void {
    for (const id of this.#usualByNode.keys()) if (!nodeIds.includes(id)) this.#usualByNode.delete(id)
  }
}
