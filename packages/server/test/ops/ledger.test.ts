import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCharges } from '../../src/billing/charges.ts'
import { MICROS_PER_DOLLAR } from '../../src/billing/money.ts'
import { newId } from '../../src/ids.ts'
import { forEachEngine } from '../support/engines.ts'
import { openServices, refusedWith } from '../support/services.ts'
import { raceCharges } from './raced-charges.ts'

/** Fewer than in ledger.slow.ts, to keep the test fast. */
const CHARGES = 1500
const CENT = MICROS_PER_DOLLAR / 100

forEachEngine(engine => {
  test(`${CHARGES} raced charges over two nodes, many sent twice, keep the ledger exact to the micro-dollar`, t =>
    raceCharges(engine, t, CHARGES))

  test('an idempotency key that is repeated on another node after a lost response charges once', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('ada@example.com')
    const otherNode = createCharges({ storage: await services.opened.reopen(), clock: services.clock })
    const chargeRequest = { userId: user.id, amount: CENT, description: 'one call' }
    const first = await createCharges(services).charge({ id: 'hub' }, chargeRequest, 'lost-answer-0001')
    assert.deepEqual(await otherNode.charge({ id: 'hub' }, chargeRequest, 'lost-answer-0001'), first)
    assert.equal(
      await refusedWith(
        otherNode.charge({ id: 'hub' }, { ...chargeRequest, userId: newId(1) }, 'lost-answer-0001'),
      ),
      'idempotency_conflict',
    )
  })
})
