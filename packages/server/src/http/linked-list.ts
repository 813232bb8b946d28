/** An entry of a `LinkedList`. `isLinked` while it is in a list; afterwards it has no references to other entries. */
export interface Entry<Value> {
  readonly value: Value
  isLinked: boolean
  before: Entry<Value> | null
  after: Entry<Value> | null
}

export function createEntry<Value>(value: Value): Entry<Value> {
  return { value, isLinked: false, before: null, after: null }
}

/**
 * An ordered list for items that come and go with every request, with removal from any place.
 *
 * Not a `Map` or `Set`: these replace their table when enough entries have been deleted, and V8 links each replaced
 * table to its successor. Once one table is in the old generation of the heap, all later tables are promoted too,
 * together with the requests that they hold; an eighth of all allocations survived in this way.
 */
export class LinkedList<Value> implements Iterable<Value> {
  #first: Entry<Value> | null = null
  #last: Entry<Value> | null = null
  #size = 0

  get size(): number {
    return this.#size
  }

  get first(): Entry<Value> | null {
    return this.#first
  }

  get last(): Entry<Value> | null {
    return this.#last
  }

  /** Appends an entry that is in no list. */
  append(entry: Entry<Value>): void {
    entry.isLinked = true
    entry.before = this.#last
    if (this.#last) this.#last.after = entry
    else this.#first = entry
    this.#last = entry
    this.#size++
  }

  /** Removes an entry of this list. Returns false if the entry is in no list. */
  remove(entry: Entry<Value>): boolean {
    if (!entry.isLinked) return false
    if (entry.before) entry.before.after = entry.after
    else this.#first = entry.after
    if (entry.after) entry.after.before = entry.before
    else this.#last = entry.before
    entry.isLinked = false
    entry.before = null
    entry.after = null
    this.#size--
    return true
  }

  *[Symbol.iterator](): Iterator<Value> {
    for (let entry = this.#first; entry; entry = entry.after) yield entry.value
  }
}
