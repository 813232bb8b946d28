import { unavailable } from '../errors.ts'

export interface WritePlaces {
  /** Waits for a place. @throws KeywayError `unavailable` where none is free in time, or too many wait already */
  enter(): Promise<void>
  leave(): void
}

/**
 * How many connections of a pool writers may hold at once; the others are for reads alone. A writer may wait for
 * another's row with its connection in hand; a read waits for nobody, so exchanges go on whatever writers wait for.
 *
 * @param patience milliseconds
 */
export function createWritePlaces({
  places,
  maxWaiting,
  patience,
}: {
  places: number
  maxWaiting: number
  patience: number
}): WritePlaces {
  let free = places
  const waiting = new Set<() => void>()

  return {
    enter() {
      if (free > 0) {
        free--
        return Promise.resolve()
      }
      if (waiting.size >= maxWaiting)
        return Promise.reject(unavailable(new Error('too many writers wait for a database connection')))
      return new Promise((resolve, reject) => {
        const admit = () => {
          clearTimeout(timer)
          waiting.delete(admit)
          resolve()
        }
        const timer = setTimeout(() => {
          waiting.delete(admit)
          reject(unavailable(new Error('no database connection became free for a writer in time')))
        }, patience)
        waiting.add(admit)
      })
    },
    leave() {
      const [next] = waiting
      if (next) next()
      else free++
    },
  }
}
