import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { MAX_BALANCE, MICROS_PER_DOLLAR, TRIAL_CREDIT } from '../../src/billing/money.ts'
import { newId } from '../../src/ids.ts'
import { forEachEngine } from '../support/engines.ts'
import { openServices } from '../support/services.ts'

const DOLLAR = MICROS_PER_DOLLAR

forEachEngine(engine => {
  test('a credit raises the balance once for each Idempotency-Key, and is audited with both balances', async t => {
    const { signIn, credits, store } = await openServices(engine, t)
    const { user } = await signIn('ada@example.com')
    const wanted = { userId: user.id, amount: 5 * DOLLAR, description: 'Sorry' }
    const entry = await credits.grant(wanted, 'credit-1', BY_COMMAND_LINE)
    assert.deepEqual([entry.kind, entry.balanceAfter], ['credit', TRIAL_CREDIT + 5 * DOLLAR])
    assert.deepEqual(await credits.grant(wanted, 'credit-1', BY_COMMAND_LINE), entry)
    assert.equal(await store.billing.balance(user.id), TRIAL_CREDIT + 5 * DOLLAR)
    const { rows } = await store.audit.list({}, { limit: 10, after: null })
    assert.deepEqual(
      rows.map(({ type, subject, before, after }) => ({ type, subject, before, after })),
      [
        {
          type: 'user.credit_granted',
          subject: { type: 'user', id: user.id, user_id: user.id },
          before: { balance: '2.00' },
          after: { balance: '7.00', ledger_entry_id: entry.id },
        },
      ],
    )
  })

  test('the refusal of a credit says why', async t => {
    const { signIn, users, credits, store } = await openServices(engine, t)
    const { user } = await signIn('ada@example.com')
    const { user: deletedUser } = await signIn('eve@example.com')
    await users.delete(deletedUser.id)
    const wanted = { userId: user.id, amount: DOLLAR, description: 'Sorry' }
    await credits.grant(wanted, 'credit-1', BY_COMMAND_LINE)
    for (const change of [{ amount: 2 * DOLLAR }, { description: 'Another' }, { userId: deletedUser.id }])
      await assert.rejects(credits.grant({ ...wanted, ...change }, 'credit-1', BY_COMMAND_LINE), {
        code: 'idempotency_conflict',
        message: 'This Idempotency-Key was used for another credit. Use a new one for each credit.',
      })
    for (const userId of [newId(0), deletedUser.id])
      await assert.rejects(credits.grant({ ...wanted, userId }, 'credit-2', BY_COMMAND_LINE), {
        code: 'not_found',
        message: 'There is no such account.',
      })
    const balance = TRIAL_CREDIT + DOLLAR
    await assert.rejects(
      credits.grant({ ...wanted, amount: MAX_BALANCE - balance + 1 }, 'credit-3', BY_COMMAND_LINE),
      {
        message: 'amount: would take the balance above 900000000.00',
      },
    )
    const entry = await credits.grant(
      { ...wanted, amount: MAX_BALANCE - balance },
      'credit-3',
      BY_COMMAND_LINE,
    )
    assert.equal(entry.balanceAfter, MAX_BALANCE)
    assert.equal(await store.billing.balance(deletedUser.id), TRIAL_CREDIT)
  })
})
