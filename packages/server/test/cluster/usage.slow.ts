import { describe, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { crashWhileCounting } from './usage-crash.ts'

describe('usage over two nodes that are killed', { skip: postgresMissing(), timeout: 3_600_000 }, () => {
  test(
    'of 1,000,000 mixed operations the sums lack at most what the last ten seconds before a kill held, and never exceed the log of answers',
    { timeout: 3_600_000 },
    t => crashWhileCounting(t, { operations: 1_000_000, keys: 200, lostMs: 10_000 }),
  )
})
