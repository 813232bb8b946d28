import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ORIGINAL_TREE } from './copy.ts'

export interface Result {
  file: string
  /** Hash of the code of the source file. */
  hash: string
  key: string
  line: number
  outcome: 'killed' | 'timed out' | 'survived' | 'not covered'
  /** File and title of the test that detected the mutant; empty if none did. */
  by: string
  /** Hash of that test or, if there is none, of all candidates (detector.ts); empty if there are none. */
  testsHash: string
  /** The limit of the total time of its tests, in seconds. */
  seconds: number
}

const RESULTS = join(ORIGINAL_TREE, '.tmp/mutants.jsonl')

/** A file with one line per result, of which the latest counts, so that an interrupted run can be continued. */
export function openResults() {
  const results = new Map<string, Result>()
  const lines = existsSync(RESULTS) ? readFileSync(RESULTS, 'utf8').split('\n').filter(Boolean) : []
  for (const line of lines) {
    const result: Result = JSON.parse(line)
    results.set(idOf(result), result)
  }
  mkdirSync(dirname(RESULTS), { recursive: true })
  return {
    all: (): Iterable<Result> => results.values(),
    find: (file: string, key: string): Result | undefined => results.get(idOf({ file, key })),
    store(result: Result): void {
      results.set(idOf(result), result)
      appendFileSync(RESULTS, `${JSON.stringify(result)}\n`)
    },
  }
}

function idOf({ file, key }: Pick<Result, 'file' | 'key'>): string {
  return `${file} ${key}`
}

export function isCaught({ outcome }: Pick<Result, 'outcome'>): boolean {
  return outcome === 'killed' || outcome === 'timed out'
}
