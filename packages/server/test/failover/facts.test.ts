import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createFacts, type KeyFact, longestGap, lostFacts, type Observer } from './facts.ts'

describe('the checker of acknowledged facts', () => {
  test('finds nothing where the service shows every fact', async () => {
    assert.deepEqual(await lostIf({}), { keys: [], revocations: [], balances: [] })
  })

  test('accepts both outcomes of a revocation that was never answered', async () => {
    assert.deepEqual((await lostIf({ ending: null })).revocations, [])
    assert.deepEqual((await lostIf({ ending: 'api_key_revoked' })).keys, [])
  })

  for (const [what, codes, kind, id] of [
    ['a lost key', { active: 'invalid_api_key' }, 'keys', 'active'],
    ['a key that ended without a revocation', { active: 'api_key_revoked' }, 'keys', 'active'],
    ['a lost key whose revocation was not answered', { ending: 'invalid_api_key' }, 'keys', 'ending'],
    ['a revoked key that works again', { revoked: null }, 'revocations', 'revoked'],
    ['a revoked key that is unknown', { revoked: 'invalid_api_key' }, 'keys', 'revoked'],
  ] as const)
    test(`finds ${what}`, async () => assert.deepEqual((await lostIf(codes))[kind], [id]))

  test('finds a lost charge, and one that was made twice', async () => {
    assert.deepEqual((await lostIf({}, 2_000_000)).balances, ['ada'])
    assert.deepEqual((await lostIf({}, 1_999_400)).balances, ['ada'])
  })

  test('measures the longest time without a success, also at the edges', () => {
    assert.equal(longestGap([10, 20, 70, 90], 0, 100), 50)
    assert.equal(longestGap([60], 0, 100), 60)
    assert.equal(longestGap([], 0, 100), 100)
    assert.equal(longestGap([50, 200], 100, 300), 100)
  })
})

/** What the checker reports as lost if the service answers the exchanges with these codes, and has this balance. */
function lostIf(codes: Partial<Record<KeyFact['state'], string | null>>, balance = 1_999_700) {
  const facts = createFacts()
  for (const state of ['active', 'ending', 'revoked'] as const)
    facts.keys.set(state, { id: state, key: `svc_${state}`, state })
  facts.charged.set('ada', 300)
  const codesWithoutLoss = { active: null, ending: null, revoked: 'api_key_revoked' }
  const observer: Observer = {
    exchange: async ({ state }) => ({ ...codesWithoutLoss, ...codes })[state],
    balance: async () => balance,
  }
  return lostFacts(facts, observer)
}
