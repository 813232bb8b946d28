/** A listener of one event. */
export type Listener<Event> = (event: Event) => void

/** A minimal typed event emitter. Listeners are called in the order of registration. */
export class Emitter<Events extends object> {
  #listeners = new Map<keyof Events, Set<Listener<never>>>()

  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): this {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners.add(listener))
    return this
  }

  off<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): this {
    this.#listeners.get(name)?.delete(listener)
    return this
  }

  once<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): this {
    const onceListener: Listener<Events[Name]> = event => {
      this.off(name, onceListener)
      listener(event)
    }
    return this.on(name, onceListener)
  }

  /** @internal */
  protected listenerCount(name: keyof Events): number {
    return this.#listeners.get(name)?.size ?? 0
  }

  /** @internal A listener that throws stops neither the others nor the agent; its error is reported as uncaught. */
  protected emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      try {
        ;(listener as Listener<Events[Name]>)(event)
      } catch (error) {
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }
}
