import { describe, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { crashWhileCounting } from './usage-crash.ts'

describe('usage over two killed nodes', { skip: postgresMissing() }, () => {
  // The bound is larger than the promised ten seconds, which usage.slow.ts checks: a slow machine flushes later.
  test('sums never exceed the logged answers, and lack none of a node that was not killed afterwards', t =>
    crashWhileCounting(t, { operations: 4000, keys: 20, lostMs: 60_000 }))
})
