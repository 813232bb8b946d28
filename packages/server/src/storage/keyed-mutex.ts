import { KeywayError } from '../errors.ts'

/**
 * Maximum number of callers that wait for one key of the mutex, which usually names a row. Lower than the number of
 * concurrent calls of a node (work-limit.ts), so that a flood on one row leaves capacity for others.
 */
export const MAX_WAITING_PER_KEY = 250

export type KeyedMutex = <Outcome>(keys: readonly string[], work: () => Promise<Outcome>) => Promise<Outcome>

/**
 * Creates a mutex for each key, within this process; callers are served in the order of their arrival. Callers that
 * need the lock of a hot row wait here in memory, instead of in the database with a connection each.
 *
 * A caller joins the queues of all its keys at once, so no caller waits for a later one and there is no deadlock. If
 * too many callers wait for one of the keys, a call rejects at once with KeywayError `rate_limited`.
 */
export function createKeyedMutex(maxWaiting = MAX_WAITING_PER_KEY): KeyedMutex {
  const queues = new Map<string, { last: Promise<void>; length: number }>()

  return async (keys, work) => {
    const distinctKeys = [...new Set(keys)]
    if (distinctKeys.some(key => (queues.get(key)?.length ?? 0) > maxWaiting)) throw tooManyWaiting()
    const ownTurn = Promise.withResolvers<void>()
    const predecessors = distinctKeys.map(key => {
      const queue = queues.get(key)
      queues.set(key, { last: ownTurn.promise, length: (queue?.length ?? 0) + 1 })
      return queue?.last
    })
    await Promise.all(predecessors)
    try {
      return await work()
    } finally {
      distinctKeys.forEach(dequeue)
      ownTurn.resolve()
    }
  }

  function dequeue(key: string): void {
    const queue = queues.get(key)!
    queue.length--
    if (queue.length === 0) queues.delete(key)
  }
}

function tooManyWaiting(): KeywayError {
  const detail = 'Too many concurrent requests for the same row. Try again in 1 second.'
  return new KeywayError('rate_limited', detail, { retryAfter: 1 })
}
