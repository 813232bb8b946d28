import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { type Charges, createCharges } from '../../src/billing/charges.ts'
import type { LedgerEntry } from '../../src/billing/ledger.ts'
import { MICROS_PER_DOLLAR, TRIAL_CREDIT } from '../../src/billing/money.ts'
import { anEntry } from '../contract/fixtures.ts'
import type { EngineName } from '../support/engines.ts'
import { openServices } from '../support/services.ts'

const PEOPLE = 10
/** Concurrent callers, more than the connections of one node. */
const CALLERS = 48
const CENT = MICROS_PER_DOLLAR / 100

/**
 * Runs concurrent charges over two nodes, every second one sent twice, with balances for nine in ten of them; then
 * checks every ledger entry.
 */
export async function raceCharges(engine: EngineName, t: TestContext, count: number): Promise<void> {
  const services = await openServices(engine, t, {})
  const { store, clock } = services
  const nodes = [
    createCharges(services),
    createCharges({ storage: await services.opened.reopen(), clock: services.clock }),
  ]
  const people: string[] = []
  for (let person = 0; person < PEOPLE; person++) {
    const { user } = await services.signIn(`person${person}@example.com`)
    // Together with the trial credit, enough for nine in ten of the charges, which are 1.5 cents on average.
    const credit = Math.round((count / PEOPLE) * 1.5 * 0.9) * CENT - TRIAL_CREDIT
    await store.billing.post(anEntry(user.id, credit, { createdAt: clock.now() }))
    people.push(user.id)
  }
  const requests = Array.from({ length: count }, (_, number) => ({
    app: { id: number % 3 === 0 ? 'console' : 'hub' },
    charge: {
      userId: people[(number * 7) % PEOPLE]!,
      amount: (number % 4) * CENT + 1 + (number % 9),
      description: `call ${number}`,
    },
    key: `charge-${number}-of-this-run`,
  }))
  const answers: (LedgerEntry | string)[][] = requests.map(() => [])
  const queue = requests.flatMap((_, number) => (number % 2 === 0 ? [number, number] : [number]))

  let nextIndex = 0
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      for (let at = nextIndex++; at < queue.length; at = nextIndex++) {
        const number = queue[at]!
        const { app, charge, key } = requests[number]!
        const answer = await untilAnswered(nodes[(caller + at) % 2]!, app, charge, key)
        answers[number]!.push(answer)
      }
    }),
  )

  const codes = new Set(answers.flat().filter(answer => typeof answer === 'string'))
  assert.deepEqual([...codes], ['insufficient_balance'])
  for (const repeatedAnswers of answers) {
    const repeatedEntries = repeatedAnswers.filter(answer => typeof answer !== 'string')
    assert.ok(new Set(repeatedEntries.map(({ id }) => id)).size <= 1, 'one key, one charge')
  }
  const chargedEntries = new Map(
    answers
      .flat()
      .filter(answer => typeof answer !== 'string')
      .map(entry => [entry.id, entry]),
  )
  assert.ok(chargedEntries.size > count / 2)
  for (const userId of people) await assertLedgerIsExact(userId, chargedEntries)

  async function assertLedgerIsExact(
    userId: string,
    allCharges: ReadonlyMap<string, LedgerEntry>,
  ): Promise<void> {
    const { rows } = await services.opened.storage.engine.connection.execute(
      `select amount, balance_after, kind from ledger_entries where user_id = '${userId}'`,
      [],
    )
    const entries = rows as { amount: number; balance_after: number; kind: string }[]
    const balance = await store.billing.balance(userId)
    assert.equal(
      entries.reduce((sum, { amount }) => sum + amount, 0),
      balance,
    )
    assert.ok(balance >= 0 && entries.every(entry => entry.balance_after >= 0))
    const charges = [...allCharges.values()].filter(entry => entry.userId === userId)
    assert.equal(entries.filter(({ kind }) => kind === 'charge').length, charges.length)
    // The entries form a chain: each balance is that of another entry plus its own amount.
    const balances = new Set(entries.map(entry => entry.balance_after))
    assert.equal(balances.size, entries.length)
    for (const entry of entries) {
      const balanceBefore = entry.balance_after - entry.amount
      assert.ok(balanceBefore === 0 || balances.has(balanceBefore))
    }
  }
}

type Charge = Parameters<Charges['charge']>

/** Retries a charge with the same idempotency key until it is answered, as an app does. */
export async function untilAnswered(node: Charges, ...charge: Charge): Promise<LedgerEntry | string> {
  for (;;) {
    const answer = await node.charge(...charge).catch((error: { code: string }) => error.code)
    if (answer !== 'unavailable') return answer
  }
}
