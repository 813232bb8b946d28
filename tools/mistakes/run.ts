/**
 * `npm run test:mistakes`: applies each mistake of mistakes.ts alone, in memory, and runs the tests that must fail, on
 * both engines. Prints a table. The exit status is 1 if a mistake was not detected, its code was not found, or
 * none was selected.
 *
 * -- TEXT…   only mistakes whose name contains one of the texts
 */
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { patienceMs } from '../../packages/server/test/support/patience.ts'
import {
  findPostgresBinaries,
  POSTGRES_URL_VARIABLE,
  startCluster,
} from '../../packages/server/test/support/postgres.ts'
import { quickFolder } from '../../packages/server/test/support/quick-folder.ts'
import { continueInCopy } from '../mutants/copy.ts'
import { ROOT, runTest } from '../mutants/run-test.ts'
import { MISTAKES, type Mistake } from './mistakes.ts'

const PACKAGES = join(ROOT, 'packages')
/**
 * Timeout of a test file, far above its time on an idle machine, since a test file that times out counts as having
 * detected the mistake.
 */
const TIMEOUT_MS = 240_000

interface Row {
  mistake: string
  result: 'caught' | 'SURVIVED' | 'NOT FOUND'
  by: string
}

await continueInCopy(import.meta.filename)
const nameParts = process.argv.slice(2)
const selectedMistakes = MISTAKES.filter(
  ({ name }) => nameParts.length === 0 || nameParts.some(text => name.includes(text)),
)
const workFolder = mkdtempSync(join(quickFolder(), 'keyway-mistakes-'))
const cluster = findPostgresBinaries() ? await startCluster() : null
const rows: Row[] = []
try {
  for (const mistake of selectedMistakes) {
    const row = await tryMistake(mistake)
    rows.push(row)
    console.log(`${row.result}: ${row.mistake} ${row.by && `(${row.by})`}`)
  }
} finally {
  await cluster?.stop()
  rmSync(workFolder, { recursive: true, force: true, maxRetries: 3 })
}
console.table(rows)
process.exitCode = rows.length > 0 && rows.every(({ result }) => result === 'caught') ? 0 : 1

async function tryMistake({ name, file, edits, tests }: Mistake): Promise<Row> {
  const source = readFileSync(join(PACKAGES, file), 'utf8')
  const places = edits.map(({ find, put }) => ({
    start: source.indexOf(find),
    end: source.indexOf(find) + find.length,
    text: put,
    isOnce: source.split(find).length === 2,
  }))
  const missingEdit = edits.find((_, index) => !places[index]!.isOnce)
  if (missingEdit)
    return { mistake: name, result: 'NOT FOUND', by: `${file}: ${JSON.stringify(missingEdit.find)}` }
  const files = tests.flatMap(pattern => globSync(pattern, { cwd: PACKAGES }).sort())
  for (const test of new Set(files)) {
    const run = await runTest(join('packages', test), {
      mutant: { file: join(PACKAGES, file), edits: places.toSorted((a, b) => a.start - b.start) },
      timeoutMs: patienceMs(TIMEOUT_MS),
      workFolder,
      onBothEngines: true,
      env: cluster ? { [POSTGRES_URL_VARIABLE]: cluster.url } : {},
    })
    if (run.outcome !== 'passed')
      return { mistake: name, result: 'caught', by: `${test}: ${run.failed || run.outcome}` }
  }
  return { mistake: name, result: 'SURVIVED', by: files.length === 0 ? `no test at ${tests.join(', ')}` : '' }
}
