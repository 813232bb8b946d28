import { createHash } from 'node:crypto'

const LINES_PER_HASH_UPDATE = 500

/** The record of a run: lines that say what happened, and their hash, which is equal for equal runs. */
export class Trace {
  readonly #hash = createHash('sha256')
  readonly #print: ((line: string) => void) | null
  #lines: string[] = []

  /** @param print called with each line */
  constructor(print: ((line: string) => void) | null = null) {
    this.#print = print
  }

  add(at: number, process: string, what: string): void {
    const line = `${at.toFixed(3)} ${process}: ${what}`
    this.#print?.(line)
    this.#lines.push(line)
    if (this.#lines.length >= LINES_PER_HASH_UPDATE) this.#flush()
  }

  /** Ends the record; returns its hash. */
  digest(): string {
    this.#flush()
    return this.#hash.digest('hex').slice(0, 16)
  }

  #flush(): void {
    this.#hash.update(this.#lines.join('\n'))
    this.#lines = []
  }
}
