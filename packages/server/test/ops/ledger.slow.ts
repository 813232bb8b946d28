import { test } from 'node:test'
import { forEachEngine } from '../support/engines.ts'
import { raceCharges } from './raced-charges.ts'

forEachEngine(engine => {
  test(
    '10,000 raced charges over two nodes, many sent twice, keep the ledger exact to the micro-dollar',
    {
      timeout: 300_000,
    },
    t => raceCharges(engine, t, 10_000),
  )
})
