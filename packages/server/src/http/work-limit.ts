import { KeywayError } from '../errors.ts'

/**
 * Calls that are handled at once: a few hundred milliseconds of work for one core. More would only wait until their
 * clients time out. Bodies are read before (body-intake.ts), so slow senders do not count.
 */
export const MAX_CONCURRENT_CALLS = 1000

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
  const byNetwork = new Map<string, number>()
  let running = 0

  return {
    async during(network, work) {
      const own = byNetwork.get(network) ?? 0
      if (running >= max && own >= share()) throw overloaded()
      running++
      byNetwork.set(network, own + 1)
      try {
        return await work()
      } finally {
        running--
        const left = byNetwork.get(network)! - 1
        if (left > 0) byNetwork.set(network, left)
        else byNetwork.delete(network)
      }
    },
  }

  function share(): number {
    return Math.max(1, Math.floor(max / byNetwork.size))
  }
}

export function overloaded(): KeywayError {
  const detail = 'The service is overloaded. Try again.'
  return new KeywayError('unavailable', detail, { retryAfter: 1 })
}
