/**
 * `npm run test:mutants -- FOLDER_OR_FILE…` (below packages/server/src or packages/sdk/src): changes the source in one
 * place at a time and runs the tests that run this place, until one fails. What no test notices has survived, and is
 * either worth a test or stands with its reason in `equivalent.json`.
 *
 *   --tests GLOB     only these test files (repeatable); else all that run the file, the quickest first
 *   --seconds N      what tests of one mutant may take (40); of more tests the quickest
 *   --parallel N     (2)
 *   --fresh          forgets earlier results; else a mutant is tried again only after its file or one of its tests changed
 *
 * Status 1 when less than 90 % were caught.
 */
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import {
  findPostgresBinaries,
  POSTGRES_URL_VARIABLE,
  startCluster,
} from '../../packages/server/test/support/postgres.ts'
import { quickFolder } from '../../packages/server/test/support/quick-folder.ts'
import { inCopy, ORIGINAL } from './copy.ts'
import { type Coverage, candidateTests, coverageOf, covers, hashOf } from './coverage.ts'
import { type Mutant, mutantsOf } from './operators.ts'
import { report } from './report.ts'
import { ROOT, runTest } from './run-test.ts'

export interface Result {
  file: string
  key: string
  line: number
  outcome: 'killed' | 'timed out' | 'survived' | 'not covered'
  /** The test file and title that noticed it. */
  by: string
  /** Of what it was judged by: the source and the test files. */
  judgedBy: string
}

const RESULTS = join(ORIGINAL, '.tmp/mutants.json')
const TIMEOUT_FACTOR = 4
const TIMEOUT_FLOOR_MS = 15_000

await inCopy(import.meta.filename)
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tests: { type: 'string', multiple: true },
    seconds: { type: 'string', default: '40' },
    parallel: { type: 'string', default: '2' },
    fresh: { type: 'boolean', default: false },
  },
})

const files = positionals.flatMap(sourcesOf)
if (files.length === 0) throw new Error('npm run test:mutants -- FOLDER_OR_FILE…, for example sessions')
const tests = values.tests
  ? values.tests.flatMap(pattern => globSync(pattern, { cwd: ROOT }))
  : candidateTests()
const results = new Map(readResults().map(result => [idOf(result), result]))
const kills = new Map<string, number>()
const into = mkdtempSync(join(quickFolder(), 'keyway-mutants-'))
const cluster = findPostgresBinaries() ? await startCluster() : null
const env = cluster ? { [POSTGRES_URL_VARIABLE]: cluster.url } : {}
const started = performance.now()
try {
  const coverage = await coverageOf(tests, files, into, inParallel, env)
  for (const file of files) await tryAll(file, coverage)
} finally {
  await cluster?.stop()
  rmSync(into, { recursive: true, force: true, maxRetries: 3 })
}
const minutes = (performance.now() - started) / 60_000
const caught = report(files, [...results.values()], minutes)
process.exitCode = caught >= 0.9 ? 0 : 1

function sourcesOf(name: string): string[] {
  const candidates = [
    name,
    `packages/server/src/${name}`,
    `packages/sdk/src/${name}`,
    `packages/server/src/${name}.ts`,
  ]
  const found = candidates.find(path => existsSync(join(ROOT, path)))
  if (!found) throw new Error(`${name} is no folder or file below packages/server/src`)
  if (statSync(join(ROOT, found)).isFile()) return [found]
  return globSync(`${found.replace(/\/$/, '')}/**/*.ts`, { cwd: ROOT }).sort()
}

async function tryAll(file: string, coverage: Coverage[]): Promise<void> {
  const mutants = mutantsOf(readFileSync(join(ROOT, file), 'utf8'))
  const keys = new Set(mutants.map(({ key }) => idOf({ file, key })))
  for (const [id, result] of results) if (result.file === file && !keys.has(id)) results.delete(id)
  let done = 0
  await inParallel(mutants, async mutant => {
    const judges = coverage.filter(each => covers(each, file, mutant.start))
    const judgedBy = [hashOf(file), ...judges.map(({ test }) => hashOf(test))].join(' ')
    const known = results.get(idOf({ file, key: mutant.key }))
    done++
    if (!values.fresh && known && (known.judgedBy === judgedBy || stillKilled(known, file))) return
    const { outcome, by } = await judge(file, mutant, judges)
    results.set(idOf({ file, key: mutant.key }), {
      file,
      key: mutant.key,
      line: mutant.line,
      outcome,
      by,
      judgedBy,
    })
    writeResults()
    if (outcome === 'survived' || outcome === 'not covered')
      console.log(`${done}/${mutants.length} ${outcome}: ${file}:${mutant.line} ${mutant.key}`)
  })
}

/** Whatever changed in other tests. */
function stillKilled({ outcome, by, judgedBy }: Result, file: string): boolean {
  const test = by.split(' ')[0]!
  if (outcome !== 'killed' || !existsSync(join(ROOT, test))) return false
  return judgedBy.startsWith(hashOf(file)) && judgedBy.includes(hashOf(test))
}

async function judge(
  file: string,
  mutant: Mutant,
  judges: Coverage[],
): Promise<Pick<Result, 'outcome' | 'by'>> {
  if (judges.length === 0) return { outcome: 'not covered', by: '' }
  for (const { test, seconds } of withinTime(judges)) {
    const options = {
      mutant: { file: join(ROOT, file), edits: [mutant] },
      timeoutMs: Math.max(TIMEOUT_FLOOR_MS, seconds * 1000 * TIMEOUT_FACTOR),
      into,
      env,
    }
    const run = await runTest(test, options)
    // Without a title the process died, be it of something else: only what happens again counts.
    const again = run.outcome === 'failed' && run.failed === '' ? await runTest(test, options) : run
    if (again.outcome === 'passed') continue
    kills.set(test, (kills.get(test) ?? 0) + 1)
    return { outcome: run.outcome === 'failed' ? 'killed' : 'timed out', by: `${test} “${run.failed}”` }
  }
  return { outcome: 'survived', by: '' }
}

/** The tests that caught most in the least time first. */
function withinTime(judges: Coverage[]): Coverage[] {
  const worth = ({ test, seconds }: Coverage) => ((kills.get(test) ?? 0) + 1) / seconds
  const sorted = judges.toSorted((a, b) => worth(b) - worth(a))
  let left = Number(values.seconds)
  return sorted.filter(({ seconds }, index) => {
    left -= seconds
    return index === 0 || left >= 0
  })
}

async function inParallel<Item>(items: readonly Item[], each: (item: Item) => Promise<void>): Promise<void> {
  const queue = items.values()
  const worker = async () => {
    for (const item of queue) await each(item)
  }
  await Promise.all(Array.from({ length: Number(values.parallel) }, worker))
}

function idOf({ file, key }: Pick<Result, 'file' | 'key'>): string {
  return `${file} ${key}`
}

function readResults(): Result[] {
  return existsSync(RESULTS) ? JSON.parse(readFileSync(RESULTS, 'utf8')) : []
}

function writeResults(): void {
  mkdirSync(dirname(RESULTS), { recursive: true })
  writeFileSync(RESULTS, JSON.stringify([...results.values()], null, 1))
}
