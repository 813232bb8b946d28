import { describe, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { crashWhileCounting } from './usage-crash.ts'

describe('usage over two killed nodes', { skip: postgresMissing(), timeout: 3_600_000 }, () => {
  test(
    'the usage of 1,000,000 mixed operations lacks at most the last ten seconds before a kill, and never exceeds the logged answers',
    { timeout: 3_600_000 },
    t => crashWhileCounting(t, { operations: 1_000_000, keys: 200, lostMs: 10_000 }),
  )
})
