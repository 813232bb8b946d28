import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ORIGINAL } from './copy.ts'
import type { Worker } from './pool.ts'
import { ROOT } from './run-test.ts'

/** A test, with the mutants that it executes. */
export interface Judge {
  file: string
  title: string
  /** Hash of the test's source. */
  hash: string
  milliseconds: number
  hits: Set<number>
}

interface Measured {
  file: string
  key: string
  tests: (Omit<Judge, 'hits' | 'file'> & { hits: number[] })[]
  /** Mutants that are executed when the test file and its imports are loaded. */
  loadHits: number[]
}

export interface Coverage {
  judges: Judge[]
  loadHits: Set<number>
}

const CACHE = join(ORIGINAL, '.tmp/mutant-coverage.json')
const LOAD_TIMEOUT_MS = 60_000
/** Slower tests are not used: a mutant that only they detect should have a more direct test. */
const LONGEST_JUDGE_MS = 20_000

/**
 * Runs each test once without a mutant. Tests that fail or take too long are left out. Results are cached until the
 * test file or one of the sources changes.
 *
 * @param sources  names the mutants: hits are known for these only
 */
export async function coverageOf(
  tests: readonly string[],
  sources: string,
  inParallel: (
    work: readonly string[],
    each: (test: string, worker: Worker) => Promise<void>,
  ) => Promise<void>,
): Promise<Coverage> {
  const known = new Map<string, Measured>(readCache().map(each => [each.file, each]))
  const keyOf = (test: string) => `${hashOf(test)} ${sources}`
  const missing = tests.filter(test => known.get(test)?.key !== keyOf(test))
  let done = 0
  await inParallel(missing, async (file, worker) => {
    const { tests, loadHits, left } = await measure(file, worker)
    console.log(`coverage ${++done}/${missing.length}: ${file} ${left.join('; ')}`)
    known.set(file, { file, key: keyOf(file), tests, loadHits })
    mkdirSync(dirname(CACHE), { recursive: true })
    writeFileSync(CACHE, JSON.stringify([...known.values()]))
  })
  const measured = tests.flatMap(test => known.get(test) ?? [])
  return {
    judges: measured.flatMap(({ file, tests }) =>
      tests.map(each => ({ ...each, file, hits: new Set(each.hits) })),
    ),
    loadHits: new Set(measured.flatMap(({ loadHits }) => loadHits)),
  }
}

async function measure(file: string, worker: Worker) {
  const loaded = await worker.ask({ kind: 'load', file }, LOAD_TIMEOUT_MS)
  if (typeof loaded === 'string' || loaded.kind !== 'loaded')
    return { tests: [], loadHits: [], left: [`LEFT OUT: ${String(loaded)}`] }
  const tests: Measured['tests'] = []
  const left: string[] = []
  for (const { title, body } of loaded.tests) {
    const ran = await worker.ask({ kind: 'run', file, title, mutant: -1 }, LONGEST_JUDGE_MS)
    if (typeof ran === 'string') left.push(`LEFT OUT: ${title}: ${ran}`)
    else if (ran.kind !== 'ran' || ran.error !== null)
      left.push(`LEFT OUT: ${title}: ${'error' in ran ? ran.error : ''}`)
    else tests.push({ title, hash: digest(title + body), milliseconds: ran.milliseconds, hits: ran.hits })
  }
  return { tests, loadHits: loaded.hits, left }
}

export function hashOf(file: string): string {
  return digest(readFileSync(join(ROOT, file), 'utf8'))
}

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 12)
}

function readCache(): Measured[] {
  return existsSync(CACHE) ? JSON.parse(readFileSync(CACHE, 'utf8')) : []
}

/**
 * The test files that are run against mutants, without those that mostly start browsers, clusters of processes or other
 * programs: a mutant that only they detect should have a more direct test.
 */
export function candidateTests(): string[] {
  return globSync('packages/*/test/**/*.test.ts', {
    cwd: ROOT,
    exclude: path => path.includes('node_modules'),
  })
    .filter(file => !SLOW.test(file))
    .sort()
}

const SLOW = /\/(structure|tools|faults|cluster|web|cli)\/|sdk\/test\/(package|bun|examples)\.test/
