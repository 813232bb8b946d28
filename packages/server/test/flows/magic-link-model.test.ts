import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CODE_WINDOW, MAX_CODE_TRIES, WRONG_CODES_PER_NETWORK } from '../../src/magic-links/code-limits.ts'
import { MAGIC_LINK_LIFETIME } from '../../src/magic-links/magic-link.ts'
import { forEachEngine } from '../support/engines.ts'
import {
  address,
  caller,
  type MailedLink,
  openServices,
  refusedWith,
  type Services,
} from '../support/services.ts'

/** A link in the model. All links are of one address. */
interface Link {
  mailed: MailedLink
  sentAt: number
  used: boolean
  codeTries: number
  /** Wrong codes that were not cleared by a right one. */
  wrong: number
}

interface Model {
  links: Link[]
  signIns: number
}

interface RealSystem {
  services: Services
  email: string
}

type Command = fc.AsyncCommand<Model, RealSystem>

const send: Command = {
  check: model => model.links.length < 4,
  async run(model, { services, email }) {
    const sentAt = services.clock.now()
    model.links.push({ mailed: await services.sendTo(email), sentAt, used: false, codeTries: 0, wrong: 0 })
  },
  toString: () => 'send',
}

const wait = (ms: number): Command => ({
  check: () => true,
  run: async (_, { services }) => services.clock.advance(ms),
  toString: () => `wait ${ms} ms`,
})

const useToken = (which: number, isRightAddress: boolean): Command => ({
  check: model => which < model.links.length,
  async run(model, { services, email }) {
    const link = model.links[which]!
    const claimedAddress = address(isRightAddress ? email : 'somebody-else@example.com')
    const proof = { token: link.mailed.token, email: claimedAddress }
    const expected = isRightAddress ? outcomeOf(model, link, services.clock.now()) : 'magic_link_invalid'
    assert.equal(await refusedWith(services.magicLinks.verify(proof, 'api', caller())), expected)
  },
  toString: () => `use link ${which}${isRightAddress ? '' : ' for another address'}`,
})

const useCode = (which: number, isRightCode: boolean): Command => ({
  check: model => which < model.links.length,
  async run(model, { services, email }) {
    const link = model.links[which]!
    const { code, loginId } = link.mailed
    const typedCode = isRightCode ? code : code.replace(/.$/, digit => String((Number(digit) + 1) % 10))
    const proof = { loginId, code: typedCode, email: address(email) }
    const expected = codeOutcome(model, link, isRightCode, services.clock.now())
    assert.equal(await refusedWith(services.magicLinks.verify(proof, 'api', caller())), expected)
  },
  toString: () => `type ${isRightCode ? 'the' : 'a wrong'} code of link ${which}`,
})

/**
 * The expected outcome for a typed code; updates the model. A wrong code for a live link uses up a try of the link and
 * one of the network; a sign-in by code gives the network back the tries that wrong codes for its link used up.
 */
function codeOutcome(model: Model, link: Link, isRight: boolean, now: number): string {
  const wrongCodeCount = model.links.reduce((sum, { wrong }) => sum + wrong, 0)
  if (link.codeTries >= MAX_CODE_TRIES || wrongCodeCount >= WRONG_CODES_PER_NETWORK[0]!.limit)
    return 'rate_limited'
  if (isRight) {
    const outcome = outcomeOf(model, link, now)
    if (outcome === 'none') link.wrong = 0
    return outcome
  }
  if (!link.used && now < link.sentAt + MAGIC_LINK_LIFETIME) {
    link.codeTries++
    link.wrong++
  }
  return 'magic_link_invalid'
}

/** The expected outcome for the right token or code of a link; updates the model. */
function outcomeOf(model: Model, link: Link, now: number): string {
  const isLive = (each: Link) => !each.used && now < each.sentAt + MAGIC_LINK_LIFETIME
  if (link.used) return 'magic_link_used'
  if (!isLive(link)) return 'magic_link_expired'
  for (const each of model.links) if (isLive(each)) each.used = true
  model.signIns++
  return 'none'
}

const commands = [
  fc.constant(send),
  fc.constantFrom(1, 30_000, 150_000, MAGIC_LINK_LIFETIME - 1, MAGIC_LINK_LIFETIME).map(wait),
  fc.tuple(fc.nat(3), fc.integer({ min: 0, max: 3 })).map(([which, luck]) => useToken(which, luck > 0)),
  fc.tuple(fc.nat(3), fc.boolean()).map(([which, right]) => useCode(which, right)),
]

forEachEngine(engine => {
  test('random sends, verifications and guesses for one address agree with the model: each link signs in once, while valid', async t => {
    const services = await openServices(engine, t)
    let addressCount = 0
    await fc.assert(
      fc.asyncProperty(fc.commands(commands, { maxCommands: 20 }), async planned => {
        const email = `model-${addressCount++}@example.com`
        const model: Model = { links: [], signIns: 0 }
        services.clock.advance(CODE_WINDOW)
        await fc.asyncModelRun(() => ({ model, real: { services, email } }), planned)
        const user = await services.store.users.findByEmail(address(email))
        assert.equal(user !== null, model.signIns > 0)
        if (user) assert.equal(await services.store.billing.balance(user.id), 2_000_000)
      }),
      { numRuns: 40, endOnFailure: true },
    )
  })
})
