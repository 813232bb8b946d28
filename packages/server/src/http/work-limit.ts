import { KeywayError } from '../errors.ts'

/**
 * Number of calls in progress from which on only networks with few of them may begin another: a few hundred
 * milliseconds of work for one core. More calls would only wait until their clients time out. Bodies are read before a
 * call starts (body-intake.ts), so slow senders do not count.
 */
export const MAX_CONCURRENT_CALLS = 1000
/**
 * From this multiple of the maximum on, only known networks may begin calls. An equal share shrinks with every further
 * network, but calls in progress cannot be stopped: without this bound a thousand networks, each of which begins as
 * many calls as its share permits when it arrives, would have 7.5 times the maximum.
 */
const RESERVE_FACTOR = 2

/** Number of entries of `callsByNetwork` above which those without calls are removed. */
const PRUNE_THRESHOLD = 1000

export interface WorkLimit {
  /**
   * Runs `work` unless `max` calls are in progress. Beyond that, a network that has less than an equal share of `max`
   * may still run one more, so that the networks with the most calls are refused first. From 2 × `max` calls on, only
   * known networks (known-networks.ts) may do that: clients without an account have none, and an account has few.
   *
   * @throws KeywayError `unavailable`, without waiting
   */
  run<Outcome>(network: string, work: () => Outcome | Promise<Outcome>): Promise<Outcome>
}

/** @param isKnown whether an account was used from this network lately */
export function createWorkLimit(
  isKnown: (network: string) => boolean,
  max: number = MAX_CONCURRENT_CALLS,
): WorkLimit {
  /**
   * Number of calls in progress by network. Entries without calls are kept for a while: a `Map` from which every
   * request deletes an entry would replace its table all the time (linked-list.ts).
   */
  const callsByNetwork = new Map<string, number>()
  let runningCallCount = 0
  let busyNetworkCount = 0
  let pruneAboveSize = PRUNE_THRESHOLD

  return {
    async run(network, work) {
      const callsOfNetwork = callsByNetwork.get(network) ?? 0
      if (runningCallCount >= max && !mayUseReserve(network, callsOfNetwork)) throw overloaded()
      runningCallCount++
      if (callsOfNetwork === 0) busyNetworkCount++
      callsByNetwork.set(network, callsOfNetwork + 1)
      if (callsByNetwork.size > pruneAboveSize) prune()
      try {
        return await work()
      } finally {
        runningCallCount--
        const remaining = callsByNetwork.get(network)! - 1
        callsByNetwork.set(network, remaining)
        if (remaining === 0) busyNetworkCount--
      }
    },
  }

  function prune(): void {
    for (const [network, calls] of callsByNetwork) if (calls === 0) callsByNetwork.delete(network)
    pruneAboveSize = Math.max(PRUNE_THRESHOLD, 2 * callsByNetwork.size)
  }

  function mayUseReserve(network: string, callsOfNetwork: number): boolean {
    const equalShare = Math.max(1, Math.floor(max / busyNetworkCount))
    return callsOfNetwork < equalShare && (runningCallCount < RESERVE_FACTOR * max || isKnown(network))
  }
}

export function overloaded(): KeywayError {
  const detail = 'The service is overloaded. Try again.'
  return new KeywayError('unavailable', detail, { retryAfter: 1 })
}
