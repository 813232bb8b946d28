import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { KeywayError } from '../../src/errors.ts'
import { WINDOW_LENGTHS } from '../../src/magic-links/send-limits.ts'
import { forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, type Services } from '../support/services.ts'

const LIMITS = [
  { window: 'minute', limit: 2 },
  { window: 'hour', limit: 4 },
  { window: 'day', limit: 6 },
] as const

/** A model of sliding windows: the times of accepted sends. */
interface Model {
  accepted: number[]
}

interface RealSystem {
  services: Services
  email: string
}

const send: fc.AsyncCommand<Model, RealSystem> = {
  check: () => true,
  async run(model, { services, email }) {
    const now = services.clock.now()
    // After a clock step back, times in the future count as now, so that no window is extended.
    model.accepted = model.accepted.map(at => Math.min(at, now))
    const waits = LIMITS.flatMap(({ window, limit }) => {
      const length = WINDOW_LENGTHS[window]
      const acceptedInWindow = model.accepted.filter(at => at > now - length).sort((a, b) => a - b)
      return acceptedInWindow.length < limit ? [] : [acceptedInWindow.at(-limit)! + length - now]
    })
    const refusal = await services.magicLinks
      .send({ email: address(email), appId: 'console' }, caller())
      .then(
        () => null,
        (error: unknown) => error,
      )
    if (waits.length === 0) {
      assert.equal(refusal, null)
      model.accepted.push(now)
      return
    }
    assert.ok(refusal instanceof KeywayError && refusal.code === 'rate_limited')
    assert.equal(refusal.extras.retryAfter, Math.ceil(Math.max(...waits) / 1000))
  },
  toString: () => 'send',
}

const wait = (ms: number): fc.AsyncCommand<Model, RealSystem> => ({
  check: () => true,
  run: async (_, { services }) => services.clock.set(services.clock.now() + ms),
  toString: () => `${ms < 0 ? 'the clock steps back' : 'wait'} ${Math.abs(ms)} ms`,
})

const command = fc.oneof(
  { weight: 5, arbitrary: fc.constant(send) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(1, 999, 29_999, 59_999, 60_000, 1_800_000, 3_600_000, 43_200_000).map(wait),
  },
  { weight: 1, arbitrary: fc.constantFrom(-1, -30_000, -7_200_000).map(wait) },
)

forEachEngine(engine => {
  test('random sends agree with the model of sliding windows, including the wait', async t => {
    const services = await openServices(engine, t, { limits: [...LIMITS] })
    let addressCount = 0
    await fc.assert(
      fc.asyncProperty(fc.commands([command], { maxCommands: 30 }), async planned => {
        const email = `window-${addressCount++}@example.com`
        await fc.asyncModelRun(() => ({ model: { accepted: [] }, real: { services, email } }), planned)
      }),
      { numRuns: 40, endOnFailure: true },
    )
  })
})
