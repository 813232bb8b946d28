import { type Coverage, type CoveringTest, digest } from './coverage.ts'
import { createWorker, type Worker } from './pool.ts'
import type { Result } from './results.ts'
import type { Candidate } from './run.ts'

export type Detection = Pick<Result, 'outcome' | 'by' | 'testsHash' | 'seconds'>

export interface DetectorOptions {
  /** Maximum total time of the tests of one mutant. */
  seconds: number
  into: string
  env: NodeJS.ProcessEnv
}

const TIMEOUT_FACTOR = 10
const TIMEOUT_FLOOR_MS = 8_000

/** Decides for each mutant whether a test detects it; runs the tests first that have detected most mutants. */
export function createDetector(coverage: Coverage, { seconds, into, env }: DetectorOptions) {
  /** By source file, the number of mutants that each test detected. */
  const kills = new Map<string, Map<CoveringTest, number>>()
  const unreliable = new Set<CoveringTest>()
  const { tests } = coverage

  /** The tests to run for a mutant; without exact coverage all tests that execute the file. */
  function candidatesFor(mutant: Candidate): CoveringTest[] {
    const direct = tests.filter(test => test.hits.has(mutant.name))
    const isClear = coverage.isKnown(mutant.name) && !mutant.isStatic && !coverage.loadHits.has(mutant.name)
    return direct.length > 0 || isClear ? direct : tests.filter(({ breadth }) => breadth.has(mutant.file))
  }

  function withinTime(found: readonly CoveringTest[], file: string, by: string | undefined): CoveringTest[] {
    // Tests that execute much of the file are likely to be about it.
    const worth = (test: CoveringTest) =>
      nameOf(test) === by
        ? Number.POSITIVE_INFINITY
        : (((kills.get(file)?.get(test) ?? 0) + 1) * (test.breadth.get(file) ?? 0)) / (test.milliseconds + 5)
    let left = seconds * 1000
    return found
      .filter(test => !unreliable.has(test))
      .map(test => ({ test, worth: worth(test) }))
      .sort((a, b) => b.worth - a.worth)
      .filter(({ test }, index) => {
        left -= test.milliseconds
        return index === 0 || left >= 0
      })
      .map(({ test }) => test)
  }

  function count(file: string, test: CoveringTest): void {
    const counts = kills.get(file) ?? new Map()
    kills.set(file, counts.set(test, (counts.get(test) ?? 0) + 1))
  }

  async function detect(mutant: Candidate, shared: Worker, by?: string): Promise<Detection> {
    const found = candidatesFor(mutant)
    if (found.length === 0) return { outcome: 'not covered', by: '', testsHash: '', seconds }
    const own = mutant.isStatic || coverage.loadHits.has(mutant.name)
    const worker = own ? createWorker({ into, env, mutant: mutant.id }) : shared
    try {
      for (const each of withinTime(found, mutant.file, by)) {
        const noticed = await notices(each, mutant, worker, own)
        if (!noticed) continue
        count(mutant.file, each)
        return { outcome: noticed, by: nameOf(each), testsHash: each.hash, seconds }
      }
      return { outcome: 'survived', by: '', testsHash: hashOfAll(found), seconds }
    } finally {
      if (own) worker.stop()
    }
  }

  /** Runs a failed test again without the mutant; if it fails again, the failure is an effect of an earlier run. */
  async function notices(
    test: CoveringTest,
    mutant: Candidate,
    worker: Worker,
    own: boolean,
  ): Promise<'killed' | 'timed out' | null> {
    const run = async (id: number) => {
      const timeoutMs = Math.max(TIMEOUT_FLOOR_MS, test.milliseconds * TIMEOUT_FACTOR)
      const answer = await worker.run(test.file, test.title, id, timeoutMs)
      if (typeof answer === 'string') return answer
      if (answer.kind === 'ran' ? answer.isStray : answer.kind === 'not loaded') worker.stop()
      return answer.kind === 'ran' && answer.error === null ? 'passed' : 'failed'
    }
    const outcome = await run(mutant.id)
    if (outcome === 'passed') return null
    // The mutant is active while its module loads, so the same process cannot run without it.
    if (own || (await run(-1)) === 'passed') return outcome === 'timed out' ? 'timed out' : 'killed'
    worker.stop()
    if ((await run(-1)) !== 'passed') {
      unreliable.add(test)
      console.log(`does not pass alone, no longer run: ${nameOf(test)}`)
      return null
    }
    const again = await run(mutant.id)
    if (again === 'passed') return null
    worker.stop()
    return again === 'timed out' ? 'timed out' : 'killed'
  }

  return {
    detect,
    /** Whether a stored result is still valid: the tests that it depends on are unchanged. */
    stillHolds(known: Result, mutant: Candidate): boolean {
      if (known.outcome === 'killed' || known.outcome === 'timed out')
        return tests.some(test => test.hash === known.testsHash && nameOf(test) === known.by)
      const found = candidatesFor(mutant)
      if (found.length === 0) return known.outcome === 'not covered'
      return known.testsHash === hashOfAll(found) && known.seconds >= seconds
    },
  }
}

function nameOf({ file, title }: CoveringTest): string {
  return `${file} “${title}”`
}

function hashOfAll(tests: readonly CoveringTest[]): string {
  return digest(tests.map(({ hash }) => hash).join())
}
