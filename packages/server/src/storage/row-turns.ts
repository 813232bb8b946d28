import { KeywayError } from '../errors.ts'

/**
 * Callers that wait for one row at most. Fewer than the calls that a node works on at once (work-limit.ts), so that
 * whoever hammers one row leaves room for everybody else.
 */
export const MAX_WAITING_FOR_A_ROW = 250

export type RowTurns = <Outcome>(rows: readonly string[], work: () => Promise<Outcome>) => Promise<Outcome>

/**
 * Runs `work` when nobody else in this process works under any of the same names, in the order of arrival. Whoever is
 * going to lock a hot row waits here, in memory, instead of in the database with a connection in hand.
 *
 * A caller joins all its queues in the same instant, so nobody waits for whoever came later, and there is no circle.
 *
 * @throws KeywayError `rate_limited`, at once, where too many wait under one of the names
 */
export function createRowTurns(maxWaiting = MAX_WAITING_FOR_A_ROW): RowTurns {
  const queues = new Map<string, { last: Promise<void>; length: number }>()

  return async (rows, work) => {
    const names = [...new Set(rows)]
    if (names.some(name => (queues.get(name)?.length ?? 0) > maxWaiting)) throw tooMany()
    const mine = Promise.withResolvers<void>()
    const ahead = names.map(name => {
      const queue = queues.get(name)
      queues.set(name, { last: mine.promise, length: (queue?.length ?? 0) + 1 })
      return queue?.last
    })
    await Promise.all(ahead)
    try {
      return await work()
    } finally {
      names.forEach(leave)
      mine.resolve()
    }
  }

  function leave(name: string): void {
    const queue = queues.get(name)!
    queue.length--
    if (queue.length === 0) queues.delete(name)
  }
}

function tooMany(): KeywayError {
  const detail = 'Too many requests for the same thing at once. Try again in 1 second.'
  return new KeywayError('rate_limited', detail, { retryAfter: 1 })
}
