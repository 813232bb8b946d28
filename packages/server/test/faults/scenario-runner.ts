import { existsSync } from 'node:fs'
import { postgresMissing } from '../support/engines.ts'
import { hasPreviousVersion } from '../support/previous-version.ts'
import { redisMissing } from '../support/redis.ts'
import { mountSmallDisk } from './disk.ts'
import { FAKETIME, type Scenario } from './scenarios.ts'
import type { ScenarioResult } from './world.ts'

/**
 * Says why a scenario cannot run on this machine, or returns false if it can. On CI it runs even if PostgreSQL or Redis
 * is missing, and fails. A missing git history is a reason there too, since checkouts on CI are shallow.
 */
export function missingFor({ needs }: Scenario): string | false {
  for (const need of needs) {
    if (need === 'postgres' && postgresMissing()) return 'PostgreSQL is not installed here'
    if (need === 'redis' && redisMissing()) return 'Redis is not installed here'
    if (need === 'faketime' && !existsSync(FAKETIME)) return 'libfaketime is not installed here'
    if (need === 'previous version' && !hasPreviousVersion())
      return 'the previous version is not in this clone'
    if (need === 'tmpfs' && !canMount()) return 'no disk can be mounted here'
  }
  return false
}

function canMount(): boolean {
  const disk = mountSmallDisk()
  disk?.unmount()
  return disk !== null
}

export async function runScenario(scenario: Scenario, seed: number, scale: number): Promise<ScenarioResult> {
  try {
    return await scenario.run(seed, scale)
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { faults: 0, operations: 0, violations: [`the scenario itself broke: ${text}`], notes: [] }
  }
}
