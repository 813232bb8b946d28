import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type MovedState, parseMovedState } from '../../src/hub/moved-state.ts'

const STATE: MovedState = {
  seq: 3,
  heldSeq: 2,
  heldMs: 0,
  secretHash: 'hash',
  address: '::1',
  client: null,
  sends: { accepted: 2, outcomes: [[1, 0]] },
  passed: [['node', 7]],
  messages: [['node:1', 'frame']],
}

test('the state of a connection that another node sends is taken as it is if all fields are valid', () => {
  const valid: Partial<MovedState>[] = [
    {},
    { client: 'agent' },
    { sends: null },
    { sends: { accepted: 0, outcomes: [] } },
    { passed: [], messages: [] },
    { seq: 0, heldSeq: 0, heldMs: 0.5 },
  ]
  for (const change of valid) {
    const state = { ...STATE, ...change }
    assert.equal(parseMovedState(state), state, JSON.stringify(change))
  }
})

test('a state with a field of another type, or without a field, is refused', () => {
  const invalidValues: Record<keyof MovedState, unknown[]> = {
    seq: ['3', -1, 1.5],
    heldSeq: ['2', -1, 2 ** 53],
    heldMs: ['0', null],
    secretHash: [null, 1],
    address: [null, 1],
    client: [1, {}],
    sends: [
      1,
      {},
      { accepted: 2 },
      { accepted: -1, outcomes: [] },
      { accepted: 2, outcomes: {} },
      { accepted: 2, outcomes: [[1]] },
      { accepted: 2, outcomes: [[1, -1]] },
      { accepted: 2, outcomes: [['1', 0]] },
      { accepted: 2, outcomes: [[1, 0, 0]] },
      { accepted: 2, outcomes: ['10'] },
    ],
    passed: [
      null,
      {},
      ['no'],
      [[7, 7]],
      [['node', '7']],
      [['node']],
      [{ 0: 'node', 1: 7 }],
      [['node', 7], null],
    ],
    messages: [null, {}, ['no'], [['node:1']], [['node:1', 1]], [[1, 'frame']], [['node:1', 'frame', '']]],
  }
  for (const value of [null, undefined, 1, 'state', [], {}]) assert.equal(parseMovedState(value), null)
  for (const [field, values] of Object.entries(invalidValues))
    for (const value of [undefined, ...values])
      assert.equal(parseMovedState({ ...STATE, [field]: value }), null, `${field}: ${JSON.stringify(value)}`)
})
