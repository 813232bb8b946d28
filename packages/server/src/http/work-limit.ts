import { KeywayError } from '../errors.ts'

/**
 * Calls that are being worked on at once. One core answers some thousands a second, so this many are a few
 * hundred milliseconds of work; more would only wait, and their callers give up before their turn comes. Whoever
 * is still sending a body does not count: slow senders take no place from others.
 */
export const MAX_WORKED_ON = 1000

export interface WorkLimit {
  /** Runs `work` if there is room. @throws KeywayError `unavailable`, at once, when there is none */
  during<Outcome>(work: () => Outcome | Promise<Outcome>): Promise<Outcome>
}

export function createWorkLimit(max: number = MAX_WORKED_ON): WorkLimit {
  let workedOn = 0
  return {
    async during(work) {
      if (workedOn >= max) throw overloaded()
      workedOn++
      try {
        return await work()
      } finally {
        workedOn--
      }
    },
  }
}

function overloaded(): KeywayError {
  const detail = 'The service has more requests than it can answer in time. Try again.'
  return new KeywayError('unavailable', detail, { retryAfter: 1 })
}
