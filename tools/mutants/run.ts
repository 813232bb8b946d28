/**
 * `npm run test:mutants -- FOLDER_OR_FILE…` (below packages/server/src or packages/sdk/src): mutation testing. Changes
 * one place of the source at a time and runs the tests that execute it, until one fails. A mutant that no test detects
 * has survived; it needs a test, or an entry with the reason in `equivalent.json`.
 *
 *   --tests GLOB     only these test files (repeatable); else all that run in one process
 *   --seconds N      maximum time of the tests of one mutant (30); tests that detected most in the least time run first
 *   --parallel N     processes (2)
 *   --sample N       number of random mutants per folder, drawn by --seed (1); else all
 *   --fresh          discards earlier results; else a mutant is run again only after its file or its tests changed
 *   --left           runs only undetected mutants that are not listed as equivalent
 *   --known          runs none; reports the results that fit the sources as they are
 *   --write          also writes the table and the survivors to results.md
 *   --draw-equivalents N  only prints N random entries of equivalent.json of all folders, drawn by --seed (1), with
 *                    their code, so that somebody checks them again
 *
 * Ends early, with the results so far, on SIGINT and SIGTERM. Status 1 if less than 90 % were detected.
 */
import {
  chmodSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import {
  findPostgresBinaries,
  POSTGRES_URL_VARIABLE,
  startCluster,
} from '../../packages/server/test/support/postgres.ts'
import { quickFolder } from '../../packages/server/test/support/quick-folder.ts'
import { continueInCopy } from './copy.ts'
import { type Coverage, candidateTests, coverageOf, digest } from './coverage.ts'
import { createDetector, type Detection } from './detector.ts'
import { isEquivalent, printDrawnEquivalents } from './equivalents.ts'
import { codeOf, type Mutant, mutantsOf } from './operators.ts'
import { createWorker, type Worker } from './pool.ts'
import { report } from './report.ts'
import { isCaught, openResults } from './results.ts'
import { ROOT } from './run-test.ts'
import { sampleBySeed } from './sample.ts'
import { instrument } from './schemata.ts'

/** A mutant with the number that activates it. */
export interface Candidate extends Mutant {
  id: number
  /** Identifies the mutant across runs: `file` and `key`. */
  name: string
  file: string
  folder: string
  /** Whether the mutant is executed only when its module is loaded, so that it needs a process of its own. */
  isStatic: boolean
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tests: { type: 'string', multiple: true },
    seconds: { type: 'string', default: '30' },
    parallel: { type: 'string', default: '2' },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    fresh: { type: 'boolean', default: false },
    known: { type: 'boolean', default: false },
    left: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    'draw-equivalents': { type: 'string' },
  },
})
if (values['draw-equivalents']) {
  printDrawnEquivalents(Number(values['draw-equivalents']), values.seed)
  process.exit()
}
await continueInCopy(import.meta.filename)

const files = positionals.flatMap(sourcesOf)
if (files.length === 0) throw new Error('npm run test:mutants -- FOLDER_OR_FILE…, for example sessions')
const tests = values.tests
  ? values.tests.flatMap(pattern => globSync(pattern, { cwd: ROOT }))
  : candidateTests(files)
const workFolder = mkdtempSync(join(quickFolder(), 'keyway-mutants-'))
chmodSync(workFolder, 0o755)
const cluster = !values.known && findPostgresBinaries() ? await startCluster() : null
const env = cluster ? { [POSTGRES_URL_VARIABLE]: cluster.url } : {}
const startedAt = performance.now()
const codeHashes = new Map(files.map(file => [file, codeHashOf(file)]))
const allMutants = instrumentAll()
const selectedMutants = values.sample ? sampleOf(Number(values.sample)) : allMutants
const results = openResults()
let isInterrupted = false
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    isInterrupted = true
  })
try {
  const names = allMutants.map(({ name }) => name)
  if (!values.known) await detectAll(await coverageOf(tests, files, names, runInParallel))
} finally {
  await cluster?.stop()
  rmSync(workFolder, { recursive: true, force: true, maxRetries: 3 })
}
const minutes = (performance.now() - startedAt) / 60_000
const currentResults = selectedMutants.flatMap(({ file, key }) => {
  const result = results.find(file, key)
  return result && result.hash === codeHashes.get(file) ? result : []
})
const caughtShare = report({
  all: allMutants,
  judged: currentResults,
  minutes,
  ...values,
  command: process.argv.slice(2).join(' '),
})
process.exitCode = caughtShare >= 0.9 ? 0 : 1

function sourcesOf(name: string): string[] {
  const candidates = [
    name,
    `packages/server/src/${name}`,
    `packages/sdk/src/${name}`,
    `packages/server/src/${name}.ts`,
  ]
  const source = candidates.find(path => existsSync(join(ROOT, path)))
  if (!source) throw new Error(`${name} is no folder or file below packages/server/src`)
  if (statSync(join(ROOT, source)).isFile()) return [source]
  return globSync(`${source.replace(/\/$/, '')}/**/*.ts`, { cwd: ROOT }).sort()
}

/** Writes each source with all its mutants to the folder that workers read (switch.cjs). */
function instrumentAll(): Candidate[] {
  const candidates: Candidate[] = []
  const instrumentedFiles: Record<string, string> = {}
  for (const file of files) {
    const source = readFileSync(join(ROOT, file), 'utf8')
    const mutants = mutantsOf(source)
    const firstId = candidates.length
    const { code, staticIds } = instrument(source, mutants, mutant => firstId + mutants.indexOf(mutant))
    const folder = positionals.find(name => sourcesOf(name).includes(file))!
    for (const [index, mutant] of mutants.entries())
      candidates.push({
        ...mutant,
        id: firstId + index,
        name: `${file} ${mutant.key}`,
        file,
        folder,
        isStatic: staticIds.has(firstId + index),
      })
    const path = join(workFolder, `${Object.keys(instrumentedFiles).length}.js`)
    writeFileSync(path, code)
    instrumentedFiles[join(ROOT, file)] = path
  }
  writeFileSync(join(workFolder, 'files.json'), JSON.stringify(instrumentedFiles))
  return candidates
}

/** Hash of a source without its comments, which do not change what a mutant does. */
function codeHashOf(file: string): string {
  return digest(codeOf(readFileSync(join(ROOT, file), 'utf8')))
}

function sampleOf(size: number): Candidate[] {
  return [...Map.groupBy(allMutants, ({ folder }) => folder).values()].flatMap(part =>
    sampleBySeed(part, ({ file, key }) => `${file} ${key}`, size, values.seed),
  )
}

async function detectAll(coverage: Coverage): Promise<void> {
  const detector = createDetector(coverage, results.all(), {
    seconds: Number(values.seconds),
    workFolder,
    env,
  })
  const mutantsToTry = selectedMutants.filter(candidate => {
    const storedResult = results.find(candidate.file, candidate.key)
    if (values.left && ((storedResult && isCaught(storedResult)) || isEquivalent(candidate))) return false
    if (values.fresh || !storedResult || storedResult.hash !== codeHashes.get(candidate.file)) return true
    return !detector.isStillValid(storedResult, candidate)
  })
  console.log(`${mutantsToTry.length} of ${selectedMutants.length} mutants to try`)
  let doneCount = 0
  await runInParallel(mutantsToTry, async (candidate, worker) => {
    const detection: Detection = await detector.detect(
      candidate,
      worker,
      results.find(candidate.file, candidate.key)?.by,
    )
    const { file, key, line } = candidate
    results.store({ file, hash: codeHashes.get(file)!, key, line, ...detection })
    doneCount++
    const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1)
    if (doneCount % 100 === 0) console.log(`${doneCount}/${mutantsToTry.length} after ${minutes} minutes`)
    if (detection.outcome === 'survived' || detection.outcome === 'not covered')
      console.log(`${doneCount}/${mutantsToTry.length} ${detection.outcome}: ${file}:${line} ${key}`)
  })
}

async function runInParallel<Item>(
  items: readonly Item[],
  each: (item: Item, worker: Worker) => Promise<void>,
): Promise<void> {
  const queue = items.values()
  const runQueue = async () => {
    const worker = createWorker({ workFolder, env })
    for (const item of queue) {
      if (isInterrupted) break
      await each(item, worker)
    }
    worker.stop()
  }
  await Promise.all(Array.from({ length: Number(values.parallel) }, runQueue))
}
