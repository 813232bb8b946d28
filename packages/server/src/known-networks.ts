import { type Clock, type Instant, MINUTE } from './clock.ts'

/** A network counts as known for one to two periods after its last use, so that agents, which exchange every quarter of an hour, stay known. */
const PERIOD = 30 * MINUTE
/** Networks that one account makes known in a period, so that one free account does not vouch for a thousand networks. */
export const MAX_NETWORKS_OF_AN_ACCOUNT = 8
/** About 10 MB. Further networks are not remembered until the period ends. */
const MAX_NETWORKS = 50_000

/**
 * Networks from which accounts signed in, refreshed or used a key lately. While requests are queued, these networks
 * have priority (http/fair-queue.ts), so that a flood from a thousand other networks does not delay the people who use
 * the service. In memory, of this node: knowing a network is a preference, never a right.
 */
export interface KnownNetworks {
  /** Must be called after a credential of this account was accepted from this network. */
  noteUse(userId: string, network: string): void
  isKnown(network: string): boolean
}

export function createKnownNetworks(clock: Pick<Clock, 'now'>): KnownNetworks {
  let current = new Set<string>()
  let previous = new Set<string>()
  /** How many networks each account made known in the current period. */
  let networksOfAccount = new Map<string, number>()
  let startedAt: Instant = clock.now()

  return {
    noteUse(userId, network) {
      startPeriod()
      if (current.has(network)) return
      const count = networksOfAccount.get(userId) ?? 0
      if (count >= MAX_NETWORKS_OF_AN_ACCOUNT || current.size >= MAX_NETWORKS) return
      networksOfAccount.set(userId, count + 1)
      current.add(network)
    },
    isKnown(network) {
      startPeriod()
      return current.has(network) || previous.has(network)
    },
  }

  function startPeriod(): void {
    const age = clock.now() - startedAt
    if (age < PERIOD) return
    previous = age < 2 * PERIOD ? current : new Set()
    current = new Set()
    networksOfAccount = new Map()
    startedAt = clock.now()
  }
}
