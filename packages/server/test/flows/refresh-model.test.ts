import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { forEachEngine } from '../support/engines.ts'
import { caller, openServices, refusedWith, type Services } from '../support/services.ts'

/** A model of a family of refresh tokens. */
interface Model {
  /** All issued tokens, oldest first; the last is the current one. */
  tokens: string[]
  /** For each token but the last, the Idempotency-Key of the refresh that rotated it. */
  keys: (string | null)[]
  ended: 'no' | 'reuse' | 'logout'
}

interface RealSystem {
  services: Services
  sessionId: string
}

const KEYS = [null, 'first-honest-key', 'second-honest-key'] as const

/** Presents the token that was issued `behind` rotations before the current one. */
class Refresh implements fc.AsyncCommand<Model, RealSystem> {
  private readonly behind: number
  private readonly key: string | null

  constructor(behind: number, key: string | null) {
    this.behind = behind
    this.key = key
  }

  check(model: Readonly<Model>): boolean {
    return this.behind < model.tokens.length
  }

  async run(model: Model, { services, sessionId }: RealSystem): Promise<void> {
    const at = model.tokens.length - 1 - this.behind
    const call = services.sessions.refresh(model.tokens[at]!, this.key, caller())
    const expected = this.expected(model, at)
    if (expected === 'rotated') {
      const { tokens } = await call
      assert.ok(!model.tokens.includes(tokens.refreshToken), 'a new token differs from all before')
      model.tokens.push(tokens.refreshToken)
      model.keys.push(this.key)
    } else if (expected === 'repeated') {
      assert.equal((await call).tokens.refreshToken, model.tokens.at(-1))
    } else {
      assert.equal(await refusedWith(call), expected)
      if (expected === 'refresh_token_reused') model.ended = 'reuse'
    }
    const storedSession = await services.store.sessions.find(sessionId)
    assert.equal(storedSession?.endedAt !== null, model.ended !== 'no')
  }

  expected(model: Model, at: number): string {
    const isRetry = this.behind > 0 && this.key !== null && model.keys[at] === this.key
    if (model.ended === 'logout') return 'invalid_refresh_token'
    if (model.ended === 'reuse') {
      return this.behind > 0 && !isRetry ? 'refresh_token_reused' : 'invalid_refresh_token'
    }
    if (this.behind === 0) return 'rotated'
    if (!isRetry) return 'refresh_token_reused'
    return this.behind === 1 ? 'repeated' : 'invalid_refresh_token'
  }

  toString(): string {
    return `refresh(${this.behind} behind, ${this.key})`
  }
}

class LogOut implements fc.AsyncCommand<Model, RealSystem> {
  check(): boolean {
    return true
  }

  async run(model: Model, { services }: RealSystem): Promise<void> {
    assert.equal(await services.sessions.endByToken(model.tokens[0]!, 'logout', caller()), true)
    if (model.ended === 'no') model.ended = 'logout'
  }

  toString(): string {
    return 'logout'
  }
}

class Wait implements fc.AsyncCommand<Model, RealSystem> {
  check(): boolean {
    return true
  }

  async run(_: Model, { services }: RealSystem): Promise<void> {
    services.clock.advance(60_000)
  }

  toString(): string {
    return 'wait'
  }
}

const command = fc.oneof(
  // Most steps are regular refreshes, so that families have many rotations before they end.
  { weight: 6, arbitrary: fc.constantFrom(...KEYS).map(key => new Refresh(0, key)) },
  { weight: 3, arbitrary: fc.constantFrom(...KEYS).map(key => new Refresh(1, key)) },
  { weight: 2, arbitrary: fc.tuple(fc.nat(4), fc.constantFrom(...KEYS)).map(args => new Refresh(...args)) },
  { weight: 1, arbitrary: fc.constant(new Wait()) },
  { weight: 1, arbitrary: fc.constant(new LogOut()) },
)

forEachEngine(engine => {
  test('random refreshes, replays and logouts of one session agree with the model', async t => {
    const services = await openServices(engine, t)
    let people = 0
    await fc.assert(
      fc.asyncProperty(fc.commands([command], { maxCommands: 15 }), async commands => {
        const { tokens, session } = await services.signIn(`person-${people++}@example.com`)
        const model: Model = { tokens: [tokens.refreshToken], keys: [], ended: 'no' }
        await fc.asyncModelRun(() => ({ model, real: { services, sessionId: session.id } }), commands)
      }),
      { numRuns: 25, endOnFailure: true },
    )
  })
})
