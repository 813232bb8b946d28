import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ORIGINAL } from './copy.ts'
import { ROOT, runTest } from './run-test.ts'

/** What one test file runs of the source files: which characters, as intervals of [from, to). */
export interface Coverage {
  test: string
  seconds: number
  /** By path, relative to the root. */
  covered: Record<string, [number, number][]>
}

/** Changes with the file, the sources asked for, and this format. */
interface Cached extends Coverage {
  key: string
}

const CACHE = join(ORIGINAL, '.tmp/mutant-coverage.json')
const SOURCES = /^packages\/(server|sdk)\/src\/.*\.ts$/
const TIMEOUT_MS = 300_000

/**
 * Which of the test files run which parts of `sources`, from one run of each with V8's coverage. Kept until the test
 * file or one of the sources changes.
 */
export async function coverageOf(
  tests: readonly string[],
  sources: readonly string[],
  into: string,
  inParallel: (work: readonly string[], each: (test: string) => Promise<void>) => Promise<void>,
  env: NodeJS.ProcessEnv,
): Promise<Coverage[]> {
  const known = readCache()
  const fingerprint = sources.map(hashOf).join()
  const missing = tests.filter(test => known.get(test)?.key !== `${hashOf(test)} ${fingerprint}`)
  let done = 0
  await inParallel(missing, async test => {
    const measured = await measure(test, into, env)
    console.log(
      `coverage ${++done}/${missing.length}: ${test} (${measured ? `${measured.seconds.toFixed(1)} s` : 'FAILED, left out'})`,
    )
    if (!measured) return
    known.set(test, { ...measured, key: `${hashOf(test)} ${fingerprint}` })
    mkdirSync(dirname(CACHE), { recursive: true })
    writeFileSync(CACHE, JSON.stringify([...known.values()]))
  })
  return tests.flatMap(test =>
    known.get(test)?.key === `${hashOf(test)} ${fingerprint}` ? [known.get(test)!] : [],
  )
}

export function covers({ covered }: Coverage, file: string, offset: number): boolean {
  return covered[file]?.some(([from, to]) => from <= offset && offset < to) ?? false
}

export function hashOf(file: string): string {
  return createHash('sha256')
    .update(readFileSync(join(ROOT, file)))
    .digest('base64url')
    .slice(0, 12)
}

function readCache(): Map<string, Cached> {
  const all: Cached[] = existsSync(CACHE) ? JSON.parse(readFileSync(CACHE, 'utf8')) : []
  return new Map(all.map(each => [each.test, each]))
}

async function measure(test: string, into: string, env: NodeJS.ProcessEnv): Promise<Coverage | undefined> {
  const folder = mkdtempSync(join(into, 'coverage-'))
  const run = await runTest(test, { timeoutMs: TIMEOUT_MS, into, env: { ...env, NODE_V8_COVERAGE: folder } })
  const covered = run.outcome === 'passed' ? read(folder) : {}
  rmSync(folder, { recursive: true })
  return run.outcome === 'passed' ? { test, seconds: run.seconds, covered } : undefined
}

interface V8Script {
  url: string
  functions: { ranges: { startOffset: number; endOffset: number; count: number }[] }[]
}

function read(folder: string): Coverage['covered'] {
  const painted = new Map<string, Uint8Array>()
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: V8Script[] }
    for (const script of result) {
      if (!script.url.startsWith('file:')) continue
      const file = fileURLToPath(script.url).slice(ROOT.length + 1)
      if (SOURCES.test(file)) paint(painted, file, script)
    }
  }
  return Object.fromEntries([...painted].map(([file, marks]) => [file, intervalsOf(marks)]))
}

/** Inner ranges come after those around them, and say more exactly what ran. */
function paint(painted: Map<string, Uint8Array>, file: string, { functions }: V8Script): void {
  const length = readFileSync(join(ROOT, file), 'utf8').length
  const marks = new Uint8Array(length)
  for (const { ranges } of functions) {
    for (const { startOffset, endOffset, count } of ranges)
      marks.fill(count > 0 ? 1 : 0, startOffset, endOffset)
  }
  const before = painted.get(file)
  painted.set(file, before ? marks.map((mark, at) => mark | before[at]!) : marks)
}

function intervalsOf(marks: Uint8Array): [number, number][] {
  const intervals: [number, number][] = []
  for (let at = 0; at < marks.length; at++) {
    if (!marks[at]) continue
    const from = at
    while (at < marks.length && marks[at]) at++
    intervals.push([from, at])
  }
  return intervals
}

/**
 * The test files that may judge a mutant. Left out is what takes most of its time to start browsers, clusters of
 * processes or other programs: a mutant that only they notice wants a test nearer to it.
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
