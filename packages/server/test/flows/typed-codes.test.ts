import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeywayError } from '../../src/errors.ts'
import {
  CODE_WINDOW,
  MAX_CODE_TRIES,
  WRONG_CODES_PER_MAILBOX,
  WRONG_CODES_PER_NETWORK,
  WRONG_CODES_RECOGNISED,
  WRONG_CODES_UNRECOGNISED,
} from '../../src/magic-links/code-limits.ts'
import { MAGIC_LINK_LIFETIME } from '../../src/magic-links/magic-link.ts'
import { UNRECOGNISED_QUEUE } from '../../src/magic-links/typed-code.ts'
import { MAX_WAITING_PER_KEY } from '../../src/storage/keyed-mutex.ts'
import { runCommand } from '../ops/command.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import {
  address,
  caller,
  type MailedLink,
  openServices,
  refusedWith,
  type Services,
} from '../support/services.ts'

const REFUSED = 'rate_limited'
const WRONG = 'magic_link_invalid'

forEachEngine((engine: EngineName) => {
  test('a link has five tries of its code; then the right code is refused unchecked, and the link works', async t => {
    const services = await openServices(engine, t)
    const sent = await services.sendTo('ada@example.com')
    for (let tries = 0; tries < MAX_CODE_TRIES; tries++)
      assert.equal(await guess(services, sent, { ip: anyIp() }), WRONG)
    const refusal = await refusalOf(services, sent)
    assert.equal(refusal.code, REFUSED)
    assert.equal(refusal.extras.retryAfter, MAGIC_LINK_LIFETIME / 1000)
    assert.equal(await useLink(services, sent), 'none')
  })

  test('wrong codes are limited per mailbox and day, over all links, +tags and networks', async t => {
    const services = await openServices(engine, t)
    for (let tries = 0; tries < WRONG_CODES_PER_MAILBOX; tries += MAX_CODE_TRIES) {
      const sent = await services.sendTo(`ada+${tries}@example.com`)
      for (let one = 0; one < MAX_CODE_TRIES; one++)
        assert.equal(await guess(services, sent, { ip: anyIp() }), WRONG)
    }
    const sent = await services.sendTo('ada@example.com')
    const { code, extras } = await refusalOf(services, sent)
    assert.deepEqual([code, extras.retryAfter, extras.window], [REFUSED, CODE_WINDOW / 1000, 'day'])
    assert.equal(await useLink(services, sent), 'none')
    assert.equal(
      await type(services, await services.sendTo('eve@example.com')),
      'none',
      'other mailboxes are not affected',
    )
  })

  const around: [name: string, ip: (host: number) => string, limit: number, outside: string][] = [
    ['an IPv4 address', () => '192.0.2.9', WRONG_CODES_PER_NETWORK[0]!.limit, '192.0.2.8'],
    ['an IPv4 /24', host => `192.0.2.${host}`, WRONG_CODES_PER_NETWORK[1]!.limit, '192.0.3.1'],
    ['an IPv6 /64', host => `2001:db8:1:1::${host}`, WRONG_CODES_PER_NETWORK[0]!.limit, '2001:db8:1:2::1'],
    ['an IPv6 /56', host => `2001:db8:1:${host}::1`, WRONG_CODES_PER_NETWORK[1]!.limit, '2001:db8:1:100::1'],
    ['an IPv6 /48', host => `2001:db8:1:${host}00::1`, WRONG_CODES_PER_NETWORK[2]!.limit, '2001:db8:2::1'],
  ]
  for (const [name, ip, limit, outside] of around) {
    test(`wrong codes are limited per day and network: ${name}`, async t => {
      const services = await openServices(engine, t)
      for (let tries = 0; tries < limit; tries++)
        assert.equal(await guess(services, await fresh(services), { ip: ip(tries + 1) }), WRONG)
      const sent = await services.sendTo('ada@example.com')
      assert.equal(await type(services, sent, { ip: ip(99) }), REFUSED)
      assert.equal(await type(services, sent, { ip: outside }), 'none')
    })
  }

  test('wrong codes from unknown browsers are limited service-wide: then codes are refused for a day, and links work', async t => {
    const services = await openServices(engine, t)
    await useUp(services)
    const sent = await services.sendTo('ada@example.com')
    assert.equal(await type(services, sent, { ip: anyIp() }), REFUSED)
    assert.equal(await useLink(services, sent), 'none')
    services.clock.advance(CODE_WINDOW - 1)
    assert.equal(await type(services, await fresh(services), { ip: anyIp() }), REFUSED)
    services.clock.advance(1)
    assert.equal(await type(services, await fresh(services), { ip: anyIp() }), 'none')
  })

  test('concurrent guesses on two nodes are checked only up to the limits, also after a restart', async t => {
    const services = await openServices(engine, t)
    const node = await services.opened.reopen()
    const second = await openServices(engine, t, { on: { node, of: services.opened } })
    const links: MailedLink[] = []
    for (let link = 0; link < 8; link++) links.push(await fresh(services))
    const outcomes = await Promise.all(
      Array.from({ length: 80 }, (_, index) =>
        guess(index % 2 ? services : second, links[index % 8]!, { ip: anyIp() }),
      ),
    )
    assert.equal(outcomes.filter(outcome => outcome === WRONG).length, WRONG_CODES_UNRECOGNISED)
    assert.equal(outcomes.filter(outcome => outcome === REFUSED).length, 80 - WRONG_CODES_UNRECOGNISED)
    const restarted = await services.opened.reopen()
    const third = await openServices(engine, t, { on: { node: restarted, of: services.opened } })
    assert.equal(await type(third, await fresh(services), { ip: anyIp() }), REFUSED)
  })

  test('a refused code writes nothing, and does not extend the wait', async t => {
    const services = await openServices(engine, t)
    await useUp(services)
    const sent = await fresh(services)
    const before = await rows(services)
    for (let again = 0; again < 10; again++) {
      services.clock.advance(1000)
      const { extras } = await refusalOf(services, sent)
      assert.equal(extras.retryAfter, CODE_WINDOW / 1000 - again - 1)
    }
    assert.deepEqual(await rows(services), before)
  })

  test('the right code clears the wrong ones before it', async t => {
    const services = await openServices(engine, t)
    for (let person = 0; person < WRONG_CODES_UNRECOGNISED; person++) {
      const sent = await fresh(services)
      assert.equal(await guess(services, sent, { ip: anyIp() }), WRONG)
      assert.equal(await type(services, sent, { ip: anyIp() }), 'none')
    }
    assert.equal((await rows(services)).length, 0)
  })

  test('the link clears wrong codes only in the browser that requested it', async t => {
    const services = await openServices(engine, t)
    const [own, others] = [await fresh(services), await fresh(services)]
    for (const sent of [own, others]) await guess(services, sent, { ip: anyIp() })
    assert.equal(await useLink(services, own, [own.loginId]), 'none')
    assert.equal(await useLink(services, others, [own.loginId]), 'none')
    assert.deepEqual(
      (await rows(services)).map(row => row.link_id),
      [others.loginId],
    )
  })

  test('a browser with an earlier sign-in has its own limit of wrong codes, which others cannot use up', async t => {
    const services = await openServices(engine, t)
    await useUp(services)
    const known = { isReturning: true }
    assert.equal(await type(services, await services.sendTo('ada@example.com'), known), 'none')
    for (let tries = 0; tries < WRONG_CODES_RECOGNISED; tries++)
      assert.equal(await guess(services, await services.sendTo('ada@example.com'), known), WRONG)
    assert.equal(await type(services, await services.sendTo('ada@example.com'), known), REFUSED)
    assert.equal(await type(services, await services.sendTo('eve@example.com'), known), 'none')
  })

  test('codes from a browser with an earlier sign-in are checked while other checks are queued', async t => {
    const services = await openServices(engine, t)
    const sent = await services.sendTo('ada@example.com')
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const waiting = Array.from({ length: MAX_WAITING_PER_KEY + 1 }, () =>
      services.storage.runExclusive([UNRECOGNISED_QUEUE], () => gate),
    )
    // On SQLite no caller waits here, since its writer serializes transactions.
    if (engine === 'postgres') assert.equal(await type(services, sent), REFUSED)
    assert.equal(await type(services, sent, { isReturning: true }), 'none')
    open()
    await Promise.all(waiting)
  })

  test('wrong codes from browsers with an earlier sign-in do not count for other browsers', async t => {
    const services = await openServices(engine, t)
    for (let person = 0; person < WRONG_CODES_UNRECOGNISED; person++)
      await guess(services, await fresh(services), { isReturning: true })
    assert.equal(await type(services, await fresh(services)), 'none')
  })

  test('clear-limits resets the limits of an address, but not the service-wide limit', async t => {
    const services = await openServices(engine, t)
    const ada = 'ada@example.com'
    const known = { isReturning: true }
    const clear = () => runCommand(services, 'users clear-limits', ada)
    for (let tries = 0; tries < WRONG_CODES_RECOGNISED; tries++)
      await guess(services, await services.sendTo(ada), known)
    for (let tries = 0; tries < WRONG_CODES_PER_MAILBOX; tries++)
      await guess(services, await services.sendTo(ada), { ip: anyIp() })
    assert.equal(await type(services, await services.sendTo(ada), known), REFUSED)
    assert.equal(await type(services, await services.sendTo(ada)), REFUSED)
    await clear()
    for (let tries = WRONG_CODES_PER_MAILBOX; tries < WRONG_CODES_UNRECOGNISED; tries++) {
      if (tries % WRONG_CODES_PER_MAILBOX === 0) await clear()
      assert.equal(await guess(services, await services.sendTo(ada), { ip: anyIp() }), WRONG)
    }
    await clear()
    assert.equal(await type(services, await services.sendTo(ada)), REFUSED, 'the service-wide limit')
    assert.equal(await type(services, await services.sendTo(ada), known), 'none')
  })

  test('a wrong code for a suspended account is refused like any other', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('held@example.com')
    await services.users.suspend(user.id)
    const held = await services.sendTo('held@example.com')
    const free = await services.sendTo('free@example.com')
    const answers = [held, free].map(sent => refusalOf(services, sent, wrong(sent.code)))
    const [one, other] = await Promise.all(answers)
    assert.equal(one!.code, WRONG)
    assert.deepEqual([one!.code, one!.message, one!.extras], [other!.code, other!.message, other!.extras])
    assert.equal(await type(services, held), 'account_suspended', 'the right code is reported as suspended')
  })
})

interface Typed {
  ip?: string
  isReturning?: boolean
}

let people = 0
let hosts = 0

/** An address in a network not used before, for every prefix length that is counted. */
function anyIp(): string {
  hosts++
  return `10.${hosts >> 8}.${hosts & 255}.1`
}

/** A link to an address not used before. */
async function fresh(services: Services): Promise<MailedLink> {
  return services.sendTo(`person-${people++}@example.com`)
}

async function verifyCode(services: Services, { loginId }: MailedLink, code: string, typed: Typed) {
  const link = await services.store.magicLinks.find(loginId)
  const proof = { loginId, code, email: address(link!.email), isReturning: typed.isReturning }
  return services.magicLinks.verify(proof, 'page', caller(typed.ip))
}

function type(services: Services, sent: MailedLink, typed: Typed = {}): Promise<string> {
  return refusedWith(verifyCode(services, sent, sent.code, typed))
}

function guess(services: Services, sent: MailedLink, typed: Typed = {}): Promise<string> {
  return refusedWith(verifyCode(services, sent, wrong(sent.code), typed))
}

async function refusalOf(services: Services, sent: MailedLink, code = sent.code): Promise<KeywayError> {
  const error = await verifyCode(services, sent, code, {}).then(
    () => null,
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof KeywayError)
  return error
}

async function useLink(services: Services, { loginId, token }: MailedLink, askedFor?: string[]) {
  const link = await services.store.magicLinks.find(loginId)
  const proof = { token, email: address(link!.email), askedFor }
  return refusedWith(services.magicLinks.verify(proof, 'page', caller()))
}

function wrong(code: string): string {
  return `${code.slice(0, -1)}${(Number(code.at(-1)) + 1) % 10}`
}

async function useUp(services: Services): Promise<void> {
  for (let tries = 0; tries < WRONG_CODES_UNRECOGNISED; tries++)
    assert.equal(await guess(services, await fresh(services), { ip: anyIp() }), WRONG)
}

async function rows({ opened }: Services): Promise<{ link_id: string }[]> {
  const sql = 'select * from wrong_codes order by id'
  const { rows: found } = await opened.storage.engine.connection.execute(sql, [])
  return found as { link_id: string }[]
}
