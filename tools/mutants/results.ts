import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ORIGINAL } from './copy.ts'

export interface Result {
  file: string
  /** Of the source file. */
  hash: string
  key: string
  line: number
  outcome: 'killed' | 'timed out' | 'survived' | 'not covered'
  /** The test file and title that noticed it. */
  by: string
  /** Changes with the test that noticed it or, where none did, with the tests that it was judged by. */
  judges: string
}

const RESULTS = join(ORIGINAL, '.tmp/mutants.jsonl')

/** One line a result, the latest counts: an interrupted run goes on where it was. */
export function openResults() {
  const known = new Map<string, Result>()
  const lines = existsSync(RESULTS) ? readFileSync(RESULTS, 'utf8').split('\n').filter(Boolean) : []
  for (const line of lines) {
    const result: Result = JSON.parse(line)
    known.set(idOf(result), result)
  }
  mkdirSync(dirname(RESULTS), { recursive: true })
  return {
    find: (file: string, key: string): Result | undefined => known.get(idOf({ file, key })),
    keep(result: Result): void {
      known.set(idOf(result), result)
      appendFileSync(RESULTS, `${JSON.stringify(result)}\n`)
    },
  }
}

function idOf({ file, key }: Pick<Result, 'file' | 'key'>): string {
  return `${file} ${key}`
}
