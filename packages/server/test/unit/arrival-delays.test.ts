import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ArrivalDelays } from '../../src/hub/arrival-delays.ts'

const SECOND = 1000

describe('the delay of a message between nodes', () => {
  test('is that beyond the fastest recent message of its node, however far their clocks are apart', () => {
    const delays = new ArrivalDelays()
    assert.equal(delays.delayOf('ahead', 5_000_000, 20), 0)
    assert.equal(delays.delayOf('behind', 10, 7_000_000), 0)
    assert.equal(delays.delayOf('ahead', 5_000_100, 150), 30)
    assert.equal(delays.delayOf('ahead', 5_000_200, 215), 0, 'a faster one is what is usual from now on')
    assert.equal(delays.delayOf('ahead', 5_000_300, 320), 5)
    for (const at of [100, 200]) assert.equal(delays.delayOf('behind', 10 + at, 7_000_005 + at), 5)
  })

  test('is noticed after a long silence', () => {
    const delays = new ArrivalDelays()
    delays.delayOf('node', 0, 5)
    assert.equal(delays.delayOf('node', 1 * SECOND, 60 * SECOND), 59 * SECOND - 5)
    assert.equal(delays.delayOf('node', 60 * SECOND, 60 * SECOND + 5), 0)
  })

  test('is usual after 20 seconds, if the machine of a node was suspended', () => {
    const delays = new ArrivalDelays()
    delays.delayOf('node', 0, 5)
    const delayAfterSuspension = (second: number) =>
      delays.delayOf('node', second * SECOND, (second + 30) * SECOND + 5)
    assert.equal(delayAfterSuspension(1), 30 * SECOND)
    assert.equal(delayAfterSuspension(11), 0)
  })
})
