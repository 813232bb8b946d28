import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, test } from 'node:test'
import { missingFor, runScenario } from './scenario-runner.ts'
import { scenarios } from './scenarios.ts'

/** Set to the seed of a failed run to repeat its faults. */
const seed = Number(process.env.KEYWAY_TEST_SEED ?? randomInt(2 ** 31))

describe('one minute of fault injection (in full: npm run test:faults)', () => {
  for (const scenario of scenarios.filter(each => each.short !== undefined)) {
    test(`no acknowledged write is lost and no revoked credential accepted: ${scenario.name}`, {
      skip: missingFor(scenario),
    }, async t => {
      t.diagnostic(`KEYWAY_TEST_SEED=${seed}`)
      const { faults, operations, violations, notes } = await runScenario(scenario, seed, scenario.short!)
      t.diagnostic([`${faults} faults, ${operations} operations`, ...notes].join('; '))
      assert.deepEqual(violations, [])
    })
  }
})
