import { describe, test } from 'node:test'
import { postgresMissing } from '../support/engines.ts'
import { crashWhileCounting } from './usage-crash.ts'

describe('usage over two killed nodes', { skip: postgresMissing() }, () => {
  // Larger than the promised ten seconds, which usage.slow.ts checks: how late a flush is depends on the machine.
  test('sums never exceed the logged answers, and lack none of a node that was not killed afterwards', t =>
    crashWhileCounting(t, { operations: 4000, keys: 20, lostMs: 60_000 }))
})
