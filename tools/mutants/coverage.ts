import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ORIGINAL_TREE } from './copy.ts'
import type { Worker } from './pool.ts'
import { ROOT } from './run-test.ts'

/** A test, with the mutants that it executes. */
export interface CoveringTest {
  file: string
  title: string
  /** Hash of the test's source. */
  hash: string
  milliseconds: number
  /** The names of the mutants that the test executes: file and `Mutant.key`. */
  hits: Set<string>
  /** Number of mutants that the test executes, by source file. */
  hitCounts: Map<string, number>
}

interface MeasuredFile {
  file: string
  /** Hash of the test file. */
  hash: string
  /** The source files whose mutants were instrumented when the tests of the file were measured. */
  sources: string[]
  /** `hits`: the mutants that the test executes, as indices into `Cache.names`. */
  tests: { title: string; hash: string; milliseconds: number; hits: number[] }[]
  /** Mutants that are executed when the test file and its imports are loaded, as indices into `Cache.names`. */
  loadHits: number[]
}

interface Cache {
  /** Names of mutants: file and `Mutant.key`. */
  names: string[]
  /** How many of `names` existed when all tests were last measured. */
  complete: number
  measured: MeasuredFile[]
}

export interface Coverage {
  tests: CoveringTest[]
  /** Mutants that are executed while some test file is loaded. */
  loadHits: Set<string>
  /** False for a mutant that was added after all tests were measured: which of them execute it is unknown. */
  isKnown(name: string): boolean
}

const CACHE_FILE = join(ORIGINAL_TREE, '.tmp/mutant-coverage.json')
/** Slower tests are not used: a mutant that only slow tests detect should have a more direct test. */
const MAX_TEST_MS = 20_000

/**
 * Runs each test once without a mutant. Tests that fail or take too long are left out. Results are cached until the
 * test file changes or a source is added. They only select the tests of a mutant, so they may be older than the
 * sources.
 *
 * @param names  the name of each mutant, by its number
 */
export async function coverageOf(
  tests: readonly string[],
  sources: readonly string[],
  names: readonly string[],
  runInParallel: (
    work: readonly string[],
    each: (test: string, worker: Worker) => Promise<void>,
  ) => Promise<void>,
): Promise<Coverage> {
  const cache = readCache()
  const indexByName = new Map(cache.names.map((name, index) => [name, index]))
  const measuredFiles = new Map(cache.measured.map(each => [each.file, each]))
  const indexOf = (id: number) => {
    const name = names[id]!
    if (!indexByName.has(name)) indexByName.set(name, indexByName.size)
    return indexByName.get(name)!
  }
  if (indexByName.size === 0) for (const id of names.keys()) indexOf(id)
  const measuredNameCount = cache.complete || indexByName.size
  const unmeasuredTests = tests.filter(test => {
    const measuredFile = measuredFiles.get(test)
    return (
      measuredFile?.hash !== hashOf(test) || !sources.every(source => measuredFile.sources.includes(source))
    )
  })
  let doneCount = 0
  await runInParallel(unmeasuredTests, async (file, worker) => {
    const { tests, loadHits, exclusions } = await measure(file, worker)
    console.log(`coverage ${++doneCount}/${unmeasuredTests.length}: ${file} ${exclusions.join('; ')}`)
    measuredFiles.set(file, {
      file,
      hash: hashOf(file),
      sources: [...sources],
      tests: tests.map(each => ({ ...each, hits: each.hits.map(indexOf) })),
      loadHits: loadHits.map(indexOf),
    })
    mkdirSync(dirname(CACHE_FILE), { recursive: true })
    writeFileSync(
      CACHE_FILE,
      JSON.stringify({
        names: [...indexByName.keys()],
        complete: measuredNameCount,
        measured: [...measuredFiles.values()],
      }),
    )
  })
  const allNames = [...indexByName.keys()]
  const coveringFiles = tests.flatMap(test => measuredFiles.get(test) ?? [])
  return {
    tests: coveringFiles.flatMap(({ file, tests }) =>
      tests.map(({ hits, ...each }) => ({
        ...each,
        file,
        ...hitsAndCounts(hits.map(index => allNames[index]!)),
      })),
    ),
    loadHits: new Set(coveringFiles.flatMap(({ loadHits }) => loadHits.map(index => allNames[index]!))),
    isKnown: name => (indexByName.get(name) ?? measuredNameCount) < measuredNameCount,
  }
}

function hitsAndCounts(hits: readonly string[]): Pick<CoveringTest, 'hits' | 'hitCounts'> {
  const hitCounts = new Map<string, number>()
  for (const name of hits) {
    const source = name.slice(0, name.indexOf(' '))
    hitCounts.set(source, (hitCounts.get(source) ?? 0) + 1)
  }
  return { hits: new Set(hits), hitCounts }
}

async function measure(file: string, worker: Worker) {
  const loadReply = await worker.load(file)
  if (typeof loadReply === 'string' || loadReply.kind !== 'loaded')
    return { tests: [], loadHits: [], exclusions: [`LEFT OUT: ${JSON.stringify(loadReply)}`] }
  const tests: MeasuredFile['tests'] = []
  const exclusions: string[] = []
  for (const { title, body } of loadReply.tests) {
    const answer = await worker.run(file, title, -1, MAX_TEST_MS)
    if (typeof answer === 'string') exclusions.push(`LEFT OUT: ${title}: ${answer}`)
    else if (answer.kind !== 'ran' || answer.error !== null)
      exclusions.push(`LEFT OUT: ${title}: ${'error' in answer ? answer.error : ''}`)
    else
      tests.push({ title, hash: digest(title + body), milliseconds: answer.milliseconds, hits: answer.hits })
  }
  return { tests, loadHits: loadReply.hits, exclusions }
}

export function hashOf(file: string): string {
  return digest(readFileSync(join(ROOT, file), 'utf8'))
}

export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 12)
}

function readCache(): Cache {
  return existsSync(CACHE_FILE)
    ? JSON.parse(readFileSync(CACHE_FILE, 'utf8'))
    : { names: [], complete: 0, measured: [] }
}

/**
 * The test files that are run against mutants of the sources, without those that mostly start browsers, clusters of
 * processes or other programs: a mutant that only those detect should have a more direct test. The SDK's tests are for
 * mutants of the SDK only, since they start the server as a process.
 */
export function candidateTests(sources: readonly string[]): string[] {
  const includesSdk = sources.some(file => file.startsWith(SDK))
  return globSync('packages/*/test/**/*.test.ts', {
    cwd: ROOT,
    exclude: path => path.includes('node_modules'),
  })
    .filter(file => !SLOW_TESTS.test(file) && (includesSdk || !file.startsWith(SDK)))
    .sort()
}

const SDK = 'packages/sdk/'
const SLOW_TESTS =
  /\/(structure|tools|faults|failover|cluster|clients|web|cli|python)\/|sdk\/test\/(package|bun|examples)\.test/
