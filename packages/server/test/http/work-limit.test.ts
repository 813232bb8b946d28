import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createWorkLimit } from '../../src/http/work-limit.ts'

describe('the work limit', () => {
  it('gives a new network the share of those with calls, not of all that ever called', async () => {
    const workLimit = createWorkLimit(4)
    for (let n = 0; n < 3000; n++) await workLimit.run(`earlier ${n}`, () => {})
    const { promise: end, resolve: finish } = Promise.withResolvers<void>()
    const busyCalls = Array.from({ length: 4 }, () => workLimit.run('busy', () => end))
    const otherCalls = [workLimit.run('other', () => end), workLimit.run('other', () => end)]
    await assert.rejects(
      workLimit.run('busy', () => {}),
      { code: 'unavailable' },
    )
    await assert.rejects(
      workLimit.run('other', () => {}),
      { code: 'unavailable' },
    )
    finish()
    await Promise.all([...busyCalls, ...otherCalls])
    assert.equal(await workLimit.run('busy', () => 'served'), 'served')
  })
})
