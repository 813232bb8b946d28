import type { Event } from '../events.ts'
import type { Log } from '../log.ts'

export interface Listeners {
  subscribe(listener: (event: Event) => void): () => void
  deliver(event: Event): void
}

/** The subscribers of this process. One that throws does not keep events from the others. */
export function createListeners(log: Log): Listeners {
  const listeners = new Set<(event: Event) => void>()
  return {
    subscribe(listener) {
      // A function of its own, so that one listener may subscribe twice.
      const own = (event: Event) => listener(event)
      listeners.add(own)
      return () => listeners.delete(own)
    },
    deliver(event) {
      for (const listener of listeners) {
        try {
          listener(event)
        } catch (error) {
          log.error({ err: error, type: event.type }, 'an event listener failed')
        }
      }
    },
  }
}
