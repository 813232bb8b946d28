/** Number of ids kept: more than arrive while two connections overlap. */
const CAPACITY = 1024

/**
 * Deduplicates messages that were written to two overlapping connections of an agent. Repeated ids on the same
 * connection are not dropped, so a sender that reuses ids loses nothing.
 */
export class RecentIds {
  #first = new Map<string, object>()

  /** False if the id arrived over another connection before. */
  add(id: string, connection: object): boolean {
    const first = this.#first.get(id)
    if (first) return first === connection
    this.#first.set(id, connection)
    if (this.#first.size > CAPACITY) this.#first.delete(this.#first.keys().next().value!)
    return true
  }
}
