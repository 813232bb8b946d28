/** Number of refusals in one period that makes a network noisy, until a whole period passes with fewer. */
export const NOISY_AFTER = 30
/** Length of a period. */
const PERIOD_MS = 10_000
/**
 * Maximum number of networks whose refusals are counted in one period; refusals of further networks are not counted.
 */
const MAX_COUNTED_NETWORKS = 50_000

/** Counts refusals per network in the current and the previous period, with bounded memory and without a timer. */
export function createRefusalCounts(clock: () => number) {
  let current = new Map<string, number>()
  let previous = current
  let startedAt = clock()
  return {
    count(network: string): void {
      const now = clock()
      if (now - startedAt >= PERIOD_MS) {
        previous = now - startedAt < 2 * PERIOD_MS ? current : new Map()
        current = new Map()
        startedAt = now
      }
      const count = current.get(network)
      if (count === undefined && current.size >= MAX_COUNTED_NETWORKS) return
      current.set(network, (count ?? 0) + 1)
    },
    isNoisy(network: string): boolean {
      if (clock() - startedAt >= 2 * PERIOD_MS) return false
      return (current.get(network) ?? 0) >= NOISY_AFTER || (previous.get(network) ?? 0) >= NOISY_AFTER
    },
  }
}
