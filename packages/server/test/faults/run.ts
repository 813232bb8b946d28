import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { missingFor, runScenario } from './scenario-runner.ts'
import { type Scenario, scenarios } from './scenarios.ts'
import type { ScenarioResult } from './world.ts'

/*
 * `npm run test:faults` runs every scenario and prints a table. `-- --seed 7` repeats the faults of that seed,
 * `-- --only Redis` runs the scenarios with that in their name, `-- --scale 0.2` shortens each.
 */

const { values } = parseArgs({
  options: { seed: { type: 'string' }, only: { type: 'string' }, scale: { type: 'string' } },
})
const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed)
const scale = Number(values.scale ?? 1)

process.exit(await runAll(scenarios.filter(({ name }) => name.includes(values.only ?? ''))))

async function runAll(chosen: readonly Scenario[]): Promise<number> {
  console.log(`seed ${seed}, commit ${currentCommit()}: npm run test:faults -- --seed ${seed}\n`)
  const rows: { scenario: Scenario; result: ScenarioResult | null; seconds: number }[] = []
  for (const scenario of chosen) {
    const missingNeed = missingFor(scenario)
    const startedAt = performance.now()
    console.log(missingNeed ? `- ${scenario.name}: skipped, ${missingNeed}` : `- ${scenario.name} …`)
    const result = missingNeed ? null : await runScenario(scenario, seed, scale)
    for (const note of result?.notes ?? []) console.log(`    ${note}`)
    for (const violation of result?.violations ?? []) console.log(`    VIOLATION ${violation}`)
    rows.push({ scenario, result, seconds: (performance.now() - startedAt) / 1000 })
  }
  const violationCount = rows.reduce((sum, { result }) => sum + (result?.violations.length ?? 0), 0)
  console.log(`\n${tableOf(rows)}\n\nseed ${seed}: ${violationCount} violations`)
  return violationCount === 0 ? 0 : 1
}

function tableOf(rows: { scenario: Scenario; result: ScenarioResult | null; seconds: number }[]): string {
  const cells = rows.map(({ scenario, result, seconds }) => [
    scenario.name,
    ...(result
      ? [result.faults, result.operations, result.violations.length, `${seconds.toFixed(0)} s`]
      : ['skipped', '', '', '']
    ).map(String),
  ])
  const table = [['Fault', 'Injected', 'Operations', 'Violations', 'Time'], ...cells]
  const widths = table[0]!.map((_, column) => Math.max(...table.map(row => row[column]!.length)))
  return table
    .map(row =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
        .join('  '),
    )
    .join('\n')
}

function currentCommit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return 'unknown'
  }
}
