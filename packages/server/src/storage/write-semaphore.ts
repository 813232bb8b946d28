import { unavailable } from '../errors.ts'

export interface WriteSemaphore {
  /** Waits for a permit. @throws KeywayError `unavailable` after the timeout, or if too many callers wait */
  acquire(): Promise<void>
  release(): void
}

/**
 * Creates a semaphore that limits the connections in use by writers; the others are reserved for reads. A writer may
 * hold its connection while it waits for a row lock. Reads never wait for a row lock, so exchanges continue while
 * writers are blocked.
 */
export function createWriteSemaphore({
  permits,
  maxWaiting,
  timeoutMs,
}: {
  permits: number
  maxWaiting: number
  timeoutMs: number
}): WriteSemaphore {
  let freePermits = permits
  const waiters = new Set<() => void>()

  return {
    acquire() {
      if (freePermits > 0) {
        freePermits--
        return Promise.resolve()
      }
      if (waiters.size >= maxWaiting)
        return Promise.reject(unavailable(new Error('too many writers wait for a database connection')))
      return new Promise((resolve, reject) => {
        const admit = () => {
          clearTimeout(timer)
          waiters.delete(admit)
          resolve()
        }
        const timer = setTimeout(() => {
          waiters.delete(admit)
          reject(unavailable(new Error('no database connection became free for a writer in time')))
        }, timeoutMs)
        waiters.add(admit)
      })
    },
    release() {
      const [next] = waiters
      if (next) next()
      else freePermits++
    },
  }
}
