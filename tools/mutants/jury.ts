import { type Coverage, digest, type Judge } from './coverage.ts'
import { createWorker, type Worker } from './pool.ts'
import type { Result } from './results.ts'
import type { Candidate } from './run.ts'

export type Verdict = Pick<Result, 'outcome' | 'by' | 'judges' | 'seconds'>

export interface JuryOptions {
  /** Maximum total time of the tests of one mutant. */
  seconds: number
  into: string
  env: NodeJS.ProcessEnv
}

const TIMEOUT_FACTOR = 10
const TIMEOUT_FLOOR_MS = 8_000

/** Decides for each mutant whether a test detects it; prefers tests that detected most. */
export function createJury(coverage: Coverage, { seconds, into, env }: JuryOptions) {
  /** By source file, the number of mutants that each test detected. */
  const kills = new Map<string, Map<Judge, number>>()
  const unreliable = new Set<Judge>()
  const { judges } = coverage

  /** Without exact coverage, all tests that execute the file. */
  function candidatesFor(mutant: Candidate): Judge[] {
    const direct = judges.filter(judge => judge.hits.has(mutant.name))
    const isClear = coverage.isKnown(mutant.name) && !mutant.isStatic && !coverage.loadHits.has(mutant.name)
    return direct.length > 0 || isClear ? direct : judges.filter(({ breadth }) => breadth.has(mutant.file))
  }

  function withinTime(found: readonly Judge[], file: string, by: string | undefined): Judge[] {
    // Tests that execute much of the file are likely to be about it.
    const worth = (judge: Judge) =>
      nameOf(judge) === by
        ? Number.POSITIVE_INFINITY
        : (((kills.get(file)?.get(judge) ?? 0) + 1) * (judge.breadth.get(file) ?? 0)) /
          (judge.milliseconds + 5)
    let left = seconds * 1000
    return found
      .filter(judge => !unreliable.has(judge))
      .map(judge => ({ judge, worth: worth(judge) }))
      .sort((a, b) => b.worth - a.worth)
      .filter(({ judge }, index) => {
        left -= judge.milliseconds
        return index === 0 || left >= 0
      })
      .map(({ judge }) => judge)
  }

  function count(file: string, judge: Judge): void {
    const counts = kills.get(file) ?? new Map()
    kills.set(file, counts.set(judge, (counts.get(judge) ?? 0) + 1))
  }

  async function judge(mutant: Candidate, shared: Worker, by?: string): Promise<Verdict> {
    const found = candidatesFor(mutant)
    if (found.length === 0) return { outcome: 'not covered', by: '', judges: '', seconds }
    const own = mutant.isStatic || coverage.loadHits.has(mutant.name)
    const worker = own ? createWorker({ into, env, mutant: mutant.id }) : shared
    try {
      for (const each of withinTime(found, mutant.file, by)) {
        const noticed = await notices(each, mutant, worker, own)
        if (!noticed) continue
        count(mutant.file, each)
        return { outcome: noticed, by: nameOf(each), judges: each.hash, seconds }
      }
      return { outcome: 'survived', by: '', judges: hashOfAll(found), seconds }
    } finally {
      if (own) worker.stop()
    }
  }

  /** Runs a failed test again without the mutant; if it fails again, the failure is an effect of an earlier run. */
  async function notices(
    test: Judge,
    mutant: Candidate,
    worker: Worker,
    own: boolean,
  ): Promise<'killed' | 'timed out' | null> {
    const run = async (id: number) => {
      const timeoutMs = Math.max(TIMEOUT_FLOOR_MS, test.milliseconds * TIMEOUT_FACTOR)
      const answer = await worker.ask(
        { kind: 'run', file: test.file, title: test.title, mutant: id },
        timeoutMs,
      )
      if (typeof answer === 'string') return answer
      if (answer.kind === 'ran' && answer.isStray) worker.stop()
      return answer.kind === 'ran' && answer.error === null ? 'passed' : 'failed'
    }
    const outcome = await run(mutant.id)
    if (outcome === 'passed') return null
    // The module was loaded with the mutant active, so it cannot be run without it.
    if (own || (await run(-1)) === 'passed') return outcome === 'timed out' ? 'timed out' : 'killed'
    worker.stop()
    if ((await run(-1)) !== 'passed') {
      unreliable.add(test)
      console.log(`does not pass alone, no longer asked: ${nameOf(test)}`)
      return null
    }
    const again = await run(mutant.id)
    if (again === 'passed') return null
    worker.stop()
    return again === 'timed out' ? 'timed out' : 'killed'
  }

  return {
    judge,
    /** Whether the tests that the result depends on are unchanged. */
    stillHolds(known: Result, mutant: Candidate): boolean {
      if (known.outcome === 'killed' || known.outcome === 'timed out')
        return judges.some(judge => judge.hash === known.judges && nameOf(judge) === known.by)
      const found = candidatesFor(mutant)
      if (found.length === 0) return known.outcome === 'not covered'
      return known.judges === hashOfAll(found) && known.seconds >= seconds
    },
  }
}

function nameOf({ file, title }: Judge): string {
  return `${file} “${title}”`
}

function hashOfAll(judges: readonly Judge[]): string {
  return digest(judges.map(({ hash }) => hash).join())
}
