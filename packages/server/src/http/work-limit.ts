import { KeywayError } from '../errors.ts'

/**
 * Calls that are being worked on at once. One core answers some thousands a second, so this many are a few
 * hundred milliseconds of work; more would only wait, and their callers give up before their turn comes. Bodies are
 * read before (body-intake.ts): slow senders take no place from others.
 */
export const MAX_WORKED_ON = 1000

export interface WorkLimit {
  /**
   * Runs `work` if there is room, or if the network has less than its share of the places: whoever takes all of them
   * is refused before anyone else is. So there are never more than twice `max` calls, and one for each network.
   *
   * @throws KeywayError `unavailable`, at once, when there is no room
   */
  during<Outcome>(network: string, work: () => Outcome | Promise<Outcome>): Promise<Outcome>
}

export function createWorkLimit(max: number = MAX_WORKED_ON): WorkLimit {
  const byNetwork = new Map<string, number>()
  let workedOn = 0

  return {
    async during(network, work) {
      const own = byNetwork.get(network) ?? 0
      if (workedOn >= max && own >= share()) throw overloaded()
      workedOn++
      byNetwork.set(network, own + 1)
      try {
        return await work()
      } finally {
        workedOn--
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
  const detail = 'The service has more requests than it can answer in time. Try again.'
  return new KeywayError('unavailable', detail, { retryAfter: 1 })
}
