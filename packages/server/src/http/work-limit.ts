import { KeywayError } from '../errors.ts'

/**
 * Calls that are handled at once: a few hundred milliseconds of work for one core. More would only wait until their
 * clients time out. Bodies are read before (body-intake.ts), so slow senders do not count.
 */
export const MAX_CONCURRENT_CALLS = 1000

/** Maximum number of networks whose entries are kept, with and without calls. */
const KEPT_NETWORKS = 1000

export interface WorkLimit {
  /**
   * Runs `work` unless `max` calls are being handled. Beyond that, a network with less than an equal share may still
   * run one, so that a network with most of the calls is refused first. The total never exceeds 2 × `max` plus one per
   * network.
   *
   * @throws KeywayError `unavailable`, without waiting
   */
  during<Outcome>(network: string, work: () => Outcome | Promise<Outcome>): Promise<Outcome>
}

export function createWorkLimit(max: number = MAX_CONCURRENT_CALLS): WorkLimit {
  /**
   * Networks without calls keep their entry for a while: a `Map` from which each request deletes would replace its table
   * all the time (linked-list.ts).
   */
  const byNetwork = new Map<string, number>()
  let running = 0
  let networks = 0
  let pruneAt = KEPT_NETWORKS

  return {
    async during(network, work) {
      const own = byNetwork.get(network) ?? 0
      if (running >= max && own >= share()) throw overloaded()
      running++
      if (own === 0) networks++
      byNetwork.set(network, own + 1)
      if (byNetwork.size > pruneAt) prune()
      try {
        return await work()
      } finally {
        running--
        const left = byNetwork.get(network)! - 1
        byNetwork.set(network, left)
        if (left === 0) networks--
      }
    },
  }

  function prune(): void {
    for (const [network, calls] of byNetwork) if (calls === 0) byNetwork.delete(network)
    pruneAt = Math.max(KEPT_NETWORKS, 2 * byNetwork.size)
  }

  function share(): number {
    return Math.max(1, Math.floor(max / networks))
  }
}

export function overloaded(): KeywayError {
  const detail = 'The service is overloaded. Try again.'
  return new KeywayError('unavailable', detail, { retryAfter: 1 })
}
