import type { Event } from '../events.ts'
import type { Log } from '../log.ts'

export interface Listeners {
  subscribe(listener: (event: Event) => void): () => void
  deliver(event: Event): void
}

/** The event listeners of this process. If one throws, the others still get the event. */
export function createListeners(log: Log): Listeners {
  const listeners = new Set<(event: Event) => void>()
  return {
    subscribe(listener) {
      // Wrapped, so that the same listener may subscribe twice.
      const ownListener = (event: Event) => listener(event)
      listeners.add(ownListener)
      return () => listeners.delete(ownListener)
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
