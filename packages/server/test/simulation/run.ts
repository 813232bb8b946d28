import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { applyVariant, BROKEN_VARIANTS } from './broken.ts'
import { installGlobals } from './globals.ts'

/*
 * `npm run simulate`: nodes, people and agents on simulated time, with faults; see docs/decisions/0040-simulation.md.
 * `-- --seed 7` repeats one run and `--trace` prints it, `-- --seeds 1000` runs that many from `--first N`, and
 * `-- --hours 8` as many as fit. `--hashes` prints the hash of each run, which is equal for equal runs.
 * `-- --broken NAME` applies the bug of this name (broken.ts) first, and succeeds when a run has the violation by which
 * the bug is known; NAME `all` tries all bugs.
 */

/** Real time after which no further run of a broken variant begins if no violation was found. */
const MAX_MINUTES_BROKEN = 10

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    first: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '20' },
    hours: { type: 'string' },
    broken: { type: 'string' },
    trace: { type: 'boolean', default: false },
    hashes: { type: 'boolean', default: false },
  },
})

if (values.broken === 'all') process.exit(runAllVariants())
const expectedViolation = values.broken ? applyVariant(values.broken) : null
installGlobals()
const { migratedDatabase } = await import('./database-image.ts')
const { simulate } = await import('./simulate.ts')

const image = await migratedDatabase()
const firstSeed = Number(values.seed ?? values.first)
const startedAt = performance.now()
const minutes = () => (performance.now() - startedAt) / 60_000
let [seed, violationCount, simulatedMs, taskCount] = [firstSeed, 0, 0, 0]
let isVariantFound = false
while (hasAnotherSeed()) {
  const outcome = await simulate(seed, image, values.trace ? line => console.log(line) : null)
  simulatedMs += outcome.simulatedMs
  taskCount += outcome.tasks
  if (values.seed || values.hashes) console.log(`seed ${seed}: ${outcome.hash}`)
  if (outcome.violation) {
    violationCount++
    isVariantFound ||= expectedViolation?.test(outcome.violation) ?? false
    console.log(`VIOLATION seed ${seed}: ${outcome.violation}`)
  }
  seed++
}
const simulatedHours = simulatedMs / 3_600_000
console.log(
  `${seed - firstSeed} seeds from ${firstSeed}: ${violationCount} violations; ${simulatedHours.toFixed(2)} simulated hours, ${taskCount} tasks, ${(simulatedHours / minutes()).toFixed(1)} simulated hours a minute, ${(minutes() * 60).toFixed(0)} s`,
)
if (expectedViolation) console.log(`${values.broken} is ${isVariantFound ? '' : 'not '}found`)
process.exit(expectedViolation ? (isVariantFound ? 0 : 1) : violationCount > 0 ? 1 : 0)

function hasAnotherSeed(): boolean {
  if (values.seed) return seed === firstSeed
  if (expectedViolation) return !isVariantFound && minutes() < MAX_MINUTES_BROKEN
  if (values.hours) return minutes() < Number(values.hours) * 60
  return seed < firstSeed + Number(values.seeds)
}

function runAllVariants(): number {
  const missedVariants = BROKEN_VARIANTS.filter(({ name }) => {
    console.log(`--- ${name}`)
    const args = [import.meta.filename, '--broken', name, '--first', values.first]
    return spawnSync(process.execPath, args, { stdio: 'inherit' }).status !== 0
  })
  console.log(`${BROKEN_VARIANTS.length - missedVariants.length} of ${BROKEN_VARIANTS.length} found`)
  return missedVariants.length > 0 ? 1 : 0
}
