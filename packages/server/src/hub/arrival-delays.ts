import { SECOND } from '../clock.ts'

/**
 * Length of a period. A node's baseline is its fastest message of the current and the previous period, so a change that
 * lasts longer becomes the baseline. Periods are long enough for a delay that lasts some seconds to be noticed, and
 * short enough for the baseline to adapt soon after a suspension of the node's machine, which stops its clock.
 */
const PERIOD_MS = 10 * SECOND

interface Baseline {
  startedAt: number
  /** The smallest difference between arrival and sending, in milliseconds, in this period and in the one before. */
  minDifference: number
  previousMinDifference: number
}

/**
 * How much later than usual the messages of other nodes arrive. Compares the monotonic clocks of both nodes, whose
 * difference is constant. The service's time (clock.ts) would not do: once the database's clock is stepped, it differs
 * by seconds between nodes that started before and nodes that started after the step.
 */
export class ArrivalDelays {
  readonly #baselines = new Map<string, Baseline>()

  /**
   * The delay of a message beyond that of the node's fastest recent message, in milliseconds.
   *
   * @param sentAt by the monotonic clock of the sending node, `now` by that of this node
   */
  delayOf(nodeId: string, sentAt: number, now: number): number {
    const difference = now - sentAt
    const baseline = this.#baselineOf(nodeId, now)
    baseline.minDifference = Math.min(baseline.minDifference, difference)
    return difference - Math.min(baseline.minDifference, baseline.previousMinDifference)
  }

  /** A period begins only with a message, so that a silence does not change the baseline. */
  #baselineOf(nodeId: string, now: number): Baseline {
    let baseline = this.#baselines.get(nodeId)
    if (!baseline || now - baseline.startedAt >= PERIOD_MS) {
      const previousMinDifference = baseline?.minDifference ?? Number.POSITIVE_INFINITY
      baseline = { startedAt: now, minDifference: Number.POSITIVE_INFINITY, previousMinDifference }
      this.#baselines.set(nodeId, baseline)
    }
    return baseline
  }

  retain(nodeIds: readonly string[]): void {
    for (const id of this.#baselines.keys()) if (!nodeIds.includes(id)) this.#baselines.delete(id)
  }
}
