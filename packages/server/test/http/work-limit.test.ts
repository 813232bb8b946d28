import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createWorkLimit } from '../../src/http/work-limit.ts'

describe('the work limit', () => {
  it('gives a new network the share of those with calls, not of all that ever called', async () => {
    const workLimit = createWorkLimit(() => false, 4)
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

  it('runs at most twice its maximum for a thousand networks that no account used, and beyond that a known network has its share', async () => {
    const workLimit = createWorkLimit(network => network === 'known', 100)
    const { promise: end, resolve: finish } = Promise.withResolvers<void>()
    let runningCount = 0
    const run = (network: string) =>
      workLimit
        .run(network, () => {
          runningCount++
          return end
        })
        .catch(error => assert.equal(error.code, 'unavailable'))
    const calls: Promise<void>[] = []
    for (let network = 0; network < 1000; network++)
      for (let n = 0; n < 101; n++) calls.push(run(`stranger ${network}`))
    assert.equal(runningCount, 200, 'of four networks, since those that came later found no place')
    for (let n = 0; n < 101; n++) calls.push(run('known'))
    assert.equal(runningCount, 200 + 100 / 5, 'an equal share of five networks')
    finish()
    await Promise.all(calls)
  })
})
