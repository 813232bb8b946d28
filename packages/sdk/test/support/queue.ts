import { patienceMs } from '../../../server/test/support/patience.ts'

/** A queue of events that a test awaits one by one. */
export class Queue<Item> {
  #items: Item[] = []
  #consumers: ((item: Item) => void)[] = []

  push(item: Item): void {
    const consumer = this.#consumers.shift()
    if (consumer) consumer(item)
    else this.#items.push(item)
  }

  /** The next item. @throws Error if none arrives within `idleMs`, extended on a busy machine */
  next(idleMs?: number): Promise<Item> {
    const item = this.#items.shift()
    if (item !== undefined) return Promise.resolve(item)
    const withinMs = patienceMs(idleMs)
    return new Promise((resolve, reject) => {
      const timeout = setTimeout(() => {
        this.#consumers.splice(this.#consumers.indexOf(deliver), 1)
        reject(new Error(`nothing arrived within ${withinMs} ms`))
      }, withinMs)
      timeout.unref() // the timer must not keep the process alive
      const deliver = (item: Item) => {
        clearTimeout(timeout)
        resolve(item)
      }
      this.#consumers.push(deliver)
    })
  }

  /** Items that the test has not awaited yet. */
  get rest(): readonly Item[] {
    return this.#items
  }
}
