import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KEPT_OUTCOMES, NO_RECEIVERS, NumberedSends } from '../../src/hub/numbered-sends.ts'

const delivered = (count: number) => ({ delivered: count, held: 0 })

test('an accepted send has no outcome until it is known, and all are settled once none is pending', async () => {
  const sends = new NumberedSends()
  assert.equal(sends.accepted, 0)
  await sends.settled()
  for (const seq of [1, 2]) sends.accept(seq)
  assert.deepEqual([sends.accepted, sends.outcomeOf(1), sends.outcomeOf(2)], [2, undefined, undefined])
  let isSettled = false
  const settled = sends.settled().then(() => {
    isSettled = true
  })
  sends.setOutcome(2, delivered(5))
  await Promise.resolve()
  assert.deepEqual([isSettled, sends.outcomeOf(1), sends.outcomeOf(2)], [false, undefined, delivered(5)])
  sends.setOutcome(1, { delivered: 3, held: 1 })
  await settled
  assert.deepEqual(sends.outcomeOf(1), { delivered: 3, held: 1 })
  await sends.settled()
})

test('a permanent refusal consumes the next number and no other', () => {
  const sends = new NumberedSends()
  sends.refuse(2)
  assert.equal(sends.accepted, 0)
  sends.refuse(1)
  assert.deepEqual([sends.accepted, sends.outcomeOf(1)], [1, NO_RECEIVERS])
  sends.refuse(1)
  assert.equal(sends.accepted, 1)
})

test('the last outcomes are kept, and move with the connection', async () => {
  const sends = new NumberedSends()
  for (let seq = 1; seq <= KEPT_OUTCOMES + 1; seq++) {
    sends.accept(seq)
    if (seq > 1) sends.setOutcome(seq, delivered(seq))
  }
  assert.deepEqual(sends.outcomeOf(1), NO_RECEIVERS, 'it was dropped')
  assert.deepEqual(sends.outcomeOf(2), delivered(2))
  sends.setOutcome(1, delivered(9))
  await sends.settled()
  assert.deepEqual(sends.outcomeOf(2), delivered(2), 'the outcome of a dropped one replaces no other')
  const state = sends.state()
  assert.deepEqual([state.accepted, state.outcomes.length, state.outcomes[0]], [65, KEPT_OUTCOMES, [2, 0]])
  const moved = new NumberedSends(state)
  assert.deepEqual(
    [moved.accepted, moved.outcomeOf(2), moved.outcomeOf(65)],
    [65, delivered(2), delivered(65)],
  )
  moved.accept(66)
  assert.deepEqual(moved.state().outcomes.at(-1), [0, 0])
})
