/** Number of refusals in one period that makes a network noisy, until a whole period passes with fewer. */
export const NOISY_AFTER = 30
const PERIOD_MS = 10_000
/**
 * Maximum number of networks whose refusals are counted in one period; refusals of further networks are not counted.
 */
const MAX_COUNTED_NETWORKS = 50_000

/** Counts refusals per network in the current and the previous period, with bounded memory and without a timer. */
export function createRefusalCounts(clock: () => number) {
  /** By network. */
  let currentCounts = new Map<string, number>()
  let previousCounts = currentCounts
  let periodStart = clock()
  return {
    count(network: string): void {
      const now = clock()
      if (now - periodStart >= PERIOD_MS) {
        previousCounts = now - periodStart < 2 * PERIOD_MS ? currentCounts : new Map()
        currentCounts = new Map()
        periodStart = now
      }
      const count = currentCounts.get(network)
      if (count === undefined && currentCounts.size >= MAX_COUNTED_NETWORKS) return
      currentCounts.set(network, (count ?? 0) + 1)
    },
    isNoisy(network: string): boolean {
      if (clock() - periodStart >= 2 * PERIOD_MS) return false
      return (
        (currentCounts.get(network) ?? 0) >= NOISY_AFTER || (previousCounts.get(network) ?? 0) >= NOISY_AFTER
      )
    },
  }
}
