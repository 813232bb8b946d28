import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createCharges } from '../../src/billing/charges.ts'
import { forEachEngine } from '../support/engines.ts'
import { caller, openServices, refusedWith, type Services } from '../support/services.ts'

const DOLLAR = 1_000_000
const APPS = ['console', 'hub', 'service-sdk'] as const

/** A model of one account. */
interface Model {
  balance: number
  authorized: Set<string>
  /** Id and amount of charges, by app and Idempotency-Key. */
  charged: Map<string, { id: string; amount: number }>
}

interface RealSystem {
  services: Services
  charges: ReturnType<typeof createCharges>
  userId: string
}

type Command = fc.AsyncCommand<Model, RealSystem>

const charge = (app: string, key: number, amount: number): Command => ({
  check: () => true,
  async run(model, { charges, userId }) {
    const name = `${app}-${userId}-${key}`
    const wantedCharge = { userId, amount, description: 'a model' }
    const earlierCharge = model.charged.get(name)
    const expected = earlierCharge
      ? earlierCharge.amount === amount
        ? 'none'
        : 'idempotency_conflict'
      : !model.authorized.has(app)
        ? 'charge_not_authorized'
        : model.balance < amount
          ? 'insufficient_balance'
          : 'none'
    // The same charge is sent twice at once, as by a client that retries before it gets the response.
    const calls = [
      charges.charge({ id: app }, wantedCharge, name),
      charges.charge({ id: app }, wantedCharge, name),
    ]
    const outcomes = await Promise.all(calls.map(refusedWith))
    assert.deepEqual(outcomes, [expected, expected])
    if (expected !== 'none') return
    const [entry, repeated] = await Promise.all(calls)
    assert.equal(entry!.id, repeated!.id)
    if (earlierCharge) assert.equal(entry!.id, earlierCharge.id)
    else model.balance -= amount
    model.charged.set(name, { id: entry!.id, amount })
  },
  toString: () => `${app} charges ${amount / DOLLAR} as number ${key}`,
})

const grant = (app: string): Command => ({
  check: () => true,
  async run(model, { services, userId }) {
    await services.accounts.authorize(userId, app, caller())
    model.authorized.add(app)
  },
  toString: () => `grant ${app}`,
})

const withdraw = (app: string): Command => ({
  check: model => model.authorized.has(app),
  async run(model, { services, userId }) {
    await services.accounts.withdraw(userId, app, caller())
    model.authorized.delete(app)
  },
  toString: () => `withdraw ${app}`,
})

const app = fc.constantFrom(...APPS)
const amount = fc.constantFrom(1, 250_000, DOLLAR - 1, DOLLAR, 2 * DOLLAR)
const command = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(app, fc.nat(3), amount).map(args => charge(...args)) },
  { weight: 1, arbitrary: app.map(grant) },
  { weight: 1, arbitrary: app.map(withdraw) },
)

forEachEngine(engine => {
  test('random charges and withdrawals agree with the model: each Idempotency-Key counts once, and the ledger sums up to the balance', async t => {
    const services = await openServices(engine, t)
    const charges = createCharges(services)
    let people = 0
    await fc.assert(
      fc.asyncProperty(fc.commands([command], { maxCommands: 20 }), async planned => {
        const userId = (await services.signIn(`ledger-${people++}@example.com`)).user.id
        const model: Model = {
          balance: 2 * DOLLAR,
          authorized: new Set(['console', 'hub']),
          charged: new Map(),
        }
        await fc.asyncModelRun(() => ({ model, real: { services, charges, userId } }), planned)
        const { rows } = await services.accounts.ledger(userId, { limit: 100, after: null })
        const sum = rows.reduce((total, entry) => total + entry.amount, 0)
        assert.deepEqual([await services.store.billing.balance(userId), sum], [model.balance, model.balance])
      }),
      { numRuns: 30, endOnFailure: true },
    )
  })
})
