/** Things that happen, to be awaited one after the other. */
export class Queue<Item> {
  #items: Item[] = []
  #waiting: ((item: Item) => void)[] = []

  push(item: Item): void {
    const waiting = this.#waiting.shift()
    if (waiting) waiting(item)
    else this.#items.push(item)
  }

  next(): Promise<Item> {
    const item = this.#items.shift()
    return item === undefined ? new Promise(resolve => this.#waiting.push(resolve)) : Promise.resolve(item)
  }

  /** What nobody has awaited yet. */
  get rest(): readonly Item[] {
    return this.#items
  }
}
