import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Coverage, type CoveringTest, digest } from './coverage.ts'
import type { Mutant } from './operators.ts'
import { createWorker, type Worker } from './pool.ts'
import { isCaught, type Result } from './results.ts'
import type { Candidate } from './run.ts'
import { ROOT } from './run-test.ts'

export type Detection = Pick<Result, 'outcome' | 'by' | 'testsHash' | 'seconds'>

export interface DetectorOptions {
  /** Maximum total time of the tests of one mutant, as measured without a mutant. The first test runs in any case. */
  seconds: number
  workFolder: string
  env: NodeJS.ProcessEnv
}

const TIMEOUT_FACTOR = 10
const MIN_TIMEOUT_MS = 8_000

/** A detected mutant of the same function counts as much as this many detected mutants elsewhere in the file. */
const SAME_FUNCTION_WEIGHT = 10

/**
 * Decides for each mutant whether a test detects it. Short tests run first, and those that are about the mutant's file
 * or have detected many mutants of it.
 */
export function createDetector(
  coverage: Coverage,
  earlier: Iterable<Result>,
  { seconds, workFolder, env }: DetectorOptions,
) {
  /** For each source file, and again for each function, the number of mutants that each test detected. */
  const kills = new Map<string, Map<string, number>>()
  for (const result of earlier) if (isCaught(result)) countKill(result, result.by)
  const unreliableTests = new Set<CoveringTest>()
  const { tests } = coverage

  /**
   * The tests that execute a mutant. These are all tests of its file if the mutant was not measured, or if no test is
   * known to execute it and the measurement may have missed some.
   */
  function candidatesFor(mutant: Candidate): CoveringTest[] {
    if (!coverage.isKnown(mutant.name)) return testsOf(mutant.file)
    const coveringTests = tests.filter(test => test.hits.has(mutant.name))
    const isExact = !mutant.isStatic && !coverage.loadHits.has(mutant.name)
    return coveringTests.length > 0 || isExact ? coveringTests : testsOf(mutant.file)
  }

  /** The tests that execute a source file, and the tests about it, some of which only read its constants. */
  function testsOf(source: string): CoveringTest[] {
    return tests.filter(({ file, hitCounts }) => hitCounts.has(source) || closeness(file, source) > 1)
  }

  /** The tests to run within the time limit, those first that are most likely to detect a mutant of the file. */
  function selectByTime(
    candidates: readonly CoveringTest[],
    mutant: Candidate,
    lastKillingTest: string | undefined,
  ): CoveringTest[] {
    const { file } = mutant
    const killsInFile = kills.get(file)
    const killsInFunction = kills.get(functionOf(mutant))
    const weight = (name: string) =>
      1 + (killsInFile?.get(name) ?? 0) + SAME_FUNCTION_WEIGHT * (killsInFunction?.get(name) ?? 0)
    const priority = (test: CoveringTest) => {
      const name = nameOf(test)
      if (name === lastKillingTest) return Number.POSITIVE_INFINITY
      // Tests that execute much of the file are likely to be about it.
      return (
        (weight(name) * closeness(test.file, file) * Math.sqrt(test.hitCounts.get(file) ?? 1)) /
        (test.milliseconds + 20)
      )
    }
    let remainingMs = seconds * 1000
    return candidates
      .filter(test => !unreliableTests.has(test))
      .map(test => ({ test, priority: priority(test) }))
      .sort((a, b) => b.priority - a.priority)
      .filter(({ test }, index) => {
        remainingMs -= test.milliseconds
        return index === 0 || remainingMs >= 0
      })
      .map(({ test }) => test)
  }

  function countKill(mutant: Pick<Mutant, 'key'> & { file: string }, test: string): void {
    for (const scope of [mutant.file, functionOf(mutant)]) {
      const counts = kills.get(scope) ?? new Map<string, number>()
      kills.set(scope, counts.set(test, (counts.get(test) ?? 0) + 1))
    }
  }

  async function detect(
    mutant: Candidate,
    sharedWorker: Worker,
    lastKillingTest?: string,
  ): Promise<Detection> {
    const candidates = candidatesFor(mutant)
    if (candidates.length === 0) return { outcome: 'not covered', by: '', testsHash: '', seconds }
    const needsOwnWorker = mutant.isStatic || coverage.loadHits.has(mutant.name)
    const worker = needsOwnWorker ? createWorker({ workFolder, env, mutant: mutant.id }) : sharedWorker
    try {
      for (const each of selectByTime(candidates, mutant, lastKillingTest)) {
        const detection = await tryTest(each, mutant, worker, needsOwnWorker)
        if (!detection) continue
        countKill(mutant, nameOf(each))
        return { outcome: detection, by: nameOf(each), testsHash: each.hash, seconds }
      }
      return { outcome: 'survived', by: '', testsHash: hashOfAll(candidates), seconds }
    } finally {
      if (needsOwnWorker) worker.stop()
    }
  }

  /** Runs a test with the mutant. A failed test is run again without the mutant, to exclude effects of earlier runs. */
  async function tryTest(
    test: CoveringTest,
    mutant: Candidate,
    worker: Worker,
    needsOwnWorker: boolean,
  ): Promise<'killed' | 'timed out' | null> {
    const run = async (id: number) => {
      const timeoutMs = Math.max(MIN_TIMEOUT_MS, test.milliseconds * TIMEOUT_FACTOR)
      const answer = await worker.run(test.file, test.title, id, timeoutMs)
      if (typeof answer === 'string') return answer
      if (answer.kind === 'ran' ? answer.isStray : answer.kind === 'not loaded') worker.stop()
      return answer.kind === 'ran' && answer.error === null ? 'passed' : 'failed'
    }
    const outcome = await run(mutant.id)
    if (outcome === 'passed') return null
    // A worker of its own loaded the module with the mutant active, so it cannot run the test without the mutant.
    if (needsOwnWorker || (await run(-1)) === 'passed')
      return outcome === 'timed out' ? 'timed out' : 'killed'
    worker.stop()
    if ((await run(-1)) !== 'passed') {
      unreliableTests.add(test)
      console.log(`does not pass alone, no longer run: ${nameOf(test)}`)
      return null
    }
    const secondOutcome = await run(mutant.id)
    if (secondOutcome === 'passed') return null
    worker.stop()
    return secondOutcome === 'timed out' ? 'timed out' : 'killed'
  }

  return {
    detect,
    /**
     * Whether a stored result is still valid: the test that killed the mutant is unchanged; or, if the mutant survived,
     * the tests that cover it are, and had at least the time that this run allows.
     */
    isStillValid(stored: Result, mutant: Candidate): boolean {
      if (stored.outcome === 'killed' || stored.outcome === 'timed out')
        return tests.some(test => test.hash === stored.testsHash && nameOf(test) === stored.by)
      const candidates = candidatesFor(mutant)
      if (candidates.length === 0) return stored.outcome === 'not covered'
      return stored.testsHash === hashOfAll(candidates) && stored.seconds >= seconds
    },
  }
}

/** How likely a test file is to be about a source file, by its name and imports. */
function closeness(test: string, source: string): number {
  const subject = basename(test, '.test.ts')
  if (subject === basename(source, '.ts') || importedBy(test).has(source)) return 200
  const folder = basename(dirname(source))
  return subject === folder || basename(dirname(test)) === folder ? 10 : 1
}

const importsOfTests = new Map<string, Set<string>>()

/** The sources that a test file itself imports. */
function importedBy(test: string): Set<string> {
  const cachedSources = importsOfTests.get(test)
  if (cachedSources) return cachedSources
  const specifiers = readFileSync(join(ROOT, test), 'utf8').matchAll(/ from '(\.\.?\/[^']+)'/g)
  const sources = new Set([...specifiers].map(([, specifier]) => join(dirname(test), specifier!)))
  importsOfTests.set(test, sources)
  return sources
}

/** The file, and the function that contains the mutant: the part of its key before the colon. */
function functionOf({ file, key }: Pick<Mutant, 'key'> & { file: string }): string {
  return `${file} ${key.slice(0, key.indexOf(':'))}`
}

function nameOf({ file, title }: CoveringTest): string {
  return `${file} “${title}”`
}

function hashOfAll(tests: readonly CoveringTest[]): string {
  return digest(tests.map(({ hash }) => hash).join())
}
