import { type Clock, type Instant, MINUTE } from './clock.ts'

/**
 * A network counts as known for one to two periods after its last use, so that the networks of agents, which exchange
 * their key every quarter of an hour, stay known.
 */
const PERIOD = 30 * MINUTE
/**
 * Maximum number of networks that one account makes known in a period, so that one free account cannot vouch for a
 * thousand networks.
 */
export const MAX_NETWORKS_OF_AN_ACCOUNT = 8
/** Maximum number of known networks, about 10 MB. Further networks are not remembered until the period ends. */
const MAX_NETWORKS = 50_000

/**
 * Networks from which accounts signed in, refreshed or used a key lately. While requests are queued, these networks
 * have priority (http/fair-queue.ts), so that a flood from a thousand other networks does not delay the people who use
 * the service. Each node keeps its own list, in memory: a known network gets priority, and never access.
 */
export interface KnownNetworks {
  /** Must be called after a credential of this account was accepted from this network. */
  noteUse(userId: string, network: string): void
  isKnown(network: string): boolean
}

export function createKnownNetworks(clock: Pick<Clock, 'now'>): KnownNetworks {
  let currentNetworks = new Set<string>()
  let previousNetworks = new Set<string>()
  /** How many networks each account made known in the current period. */
  let networkCounts = new Map<string, number>()
  let periodStart: Instant = clock.now()

  return {
    noteUse(userId, network) {
      rotateIfPeriodEnded()
      if (currentNetworks.has(network)) return
      const count = networkCounts.get(userId) ?? 0
      if (count >= MAX_NETWORKS_OF_AN_ACCOUNT || currentNetworks.size >= MAX_NETWORKS) return
      networkCounts.set(userId, count + 1)
      currentNetworks.add(network)
    },
    isKnown(network) {
      rotateIfPeriodEnded()
      return currentNetworks.has(network) || previousNetworks.has(network)
    },
  }

  function rotateIfPeriodEnded(): void {
    const age = clock.now() - periodStart
    if (age < PERIOD) return
    previousNetworks = age < 2 * PERIOD ? currentNetworks : new Set()
    currentNetworks = new Set()
    networkCounts = new Map()
    periodStart = clock.now()
  }
}
