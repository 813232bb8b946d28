import { type Coverage, digest, type Judge } from './coverage.ts'
import { createWorker, type Worker } from './pool.ts'
import type { Result } from './results.ts'
import type { Candidate } from './run.ts'

export type Verdict = Pick<Result, 'outcome' | 'by' | 'judges'>

export interface JuryOptions {
  /** Maximum total time of the tests of one mutant. */
  secondsEach: number
  into: string
  env: NodeJS.ProcessEnv
}

const TIMEOUT_FACTOR = 10
const TIMEOUT_FLOOR_MS = 8_000
const UNCOVERED: Verdict = { outcome: 'not covered', by: '', judges: '' }

/** Decides for each mutant whether a test detects it; prefers tests that detected most. */
export function createJury(
  { judges, loadHits }: Coverage,
  mutants: readonly Candidate[],
  { secondsEach, into, env }: JuryOptions,
) {
  /** By source file, the number of mutants that each test detected. */
  const kills = new Map<string, Map<Judge, number>>()
  const unreliable = new Set<Judge>()
  const byFile = Map.groupBy(mutants, ({ file }) => file)

  /**
   * For code executed when a module is loaded, the tests that execute most of the file, since coverage does not tell
   * more.
   */
  function candidatesFor(mutant: Candidate): Judge[] {
    const direct = judges.filter(judge => judge.hits.has(mutant.id))
    if (direct.length > 0 || !(mutant.isStatic || loadHits.has(mutant.id))) return direct
    return judges.filter(judge => byFile.get(mutant.file)!.some(({ id }) => judge.hits.has(id)))
  }

  function withinTime(found: readonly Judge[], file: string, by: string | undefined): Judge[] {
    const worth = (judge: Judge) =>
      nameOf(judge) === by
        ? Number.POSITIVE_INFINITY
        : ((kills.get(file)?.get(judge) ?? 0) + 1) / (judge.milliseconds + 5)
    let left = secondsEach * 1000
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
    if (found.length === 0) return UNCOVERED
    const own = mutant.isStatic || !found[0]!.hits.has(mutant.id)
    const worker = own ? createWorker({ into, env, mutant: mutant.id }) : shared
    try {
      for (const each of withinTime(found, mutant.file, by)) {
        const noticed = await notices(each, mutant, worker, own)
        if (!noticed) continue
        count(mutant.file, each)
        return { outcome: noticed, by: nameOf(each), judges: each.hash }
      }
      return { outcome: 'survived', by: '', judges: hashOfAll(found) }
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
    isFresh = false,
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
    const caught = outcome === 'timed out' ? 'timed out' : 'killed'
    // The module was loaded with the mutant active, so it cannot be run without it.
    if (own) return caught
    if ((await run(-1)) === 'passed') return caught
    worker.stop()
    if (!isFresh) return notices(test, mutant, worker, own, true)
    unreliable.add(test)
    console.log(`does not pass twice in a row, no longer asked: ${nameOf(test)}`)
    return null
  }

  return {
    judge,
    /** Whether the tests that the result depends on are unchanged. */
    stillHolds(known: Result, mutant: Candidate): boolean {
      if (known.outcome === 'killed' || known.outcome === 'timed out')
        return judges.some(judge => judge.hash === known.judges && nameOf(judge) === known.by)
      const found = candidatesFor(mutant)
      return found.length === 0 ? known.outcome === 'not covered' : known.judges === hashOfAll(found)
    },
  }
}

function nameOf({ file, title }: Judge): string {
  return `${file} “${title}”`
}

function hashOfAll(judges: readonly Judge[]): string {
  return digest(judges.map(({ hash }) => hash).join())
}
