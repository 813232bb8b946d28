import { patienceMs } from '../../../server/test/support/patience.ts'

/** A queue of events that a test awaits one by one. */
export class Queue<Item> {
  #items: Item[] = []
  #waiting: ((item: Item) => void)[] = []

  push(item: Item): void {
    const waiting = this.#waiting.shift()
    if (waiting) waiting(item)
    else this.#items.push(item)
  }

  /** The next item. @throws Error if none arrives within `idleMs`, extended on a busy machine */
  next(idleMs?: number): Promise<Item> {
    const item = this.#items.shift()
    if (item !== undefined) return Promise.resolve(item)
    const withinMs = patienceMs(idleMs)
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1)
        reject(new Error(`nothing arrived within ${withinMs} ms`))
      }, withinMs)
      late.unref() // the timer must not keep the process alive
      const take = (item: Item) => {
        clearTimeout(late)
        resolve(item)
      }
      this.#waiting.push(take)
    })
  }

  /** Items that were not awaited yet. */
  get rest(): readonly Item[] {
    return this.#items
  }
}
