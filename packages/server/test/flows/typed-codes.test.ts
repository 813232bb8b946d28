import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeywayError } from '../../src/errors.ts'
import { createLog } from '../../src/log.ts'
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

const RATE_LIMITED = 'rate_limited'
const INVALID_CODE = 'magic_link_invalid'

forEachEngine((engine: EngineName) => {
  test('a link has five tries of its code; then the right code is refused unchecked, and the link works', async t => {
    const services = await openServices(engine, t)
    const mailedLink = await services.sendTo('ada@example.com')
    for (let tries = 0; tries < MAX_CODE_TRIES; tries++)
      assert.equal(await typeWrongCode(services, mailedLink, { ip: unusedIp() }), INVALID_CODE)
    const refusal = await refusalOf(services, mailedLink)
    assert.equal(refusal.code, RATE_LIMITED)
    assert.equal(refusal.extras.retryAfter, MAGIC_LINK_LIFETIME / 1000)
    assert.equal(await useLink(services, mailedLink), 'none')
  })

  test('wrong codes are limited per mailbox and day, over all links, +tags and networks', async t => {
    const services = await openServices(engine, t)
    for (let tries = 0; tries < WRONG_CODES_PER_MAILBOX; tries += MAX_CODE_TRIES) {
      const mailedLink = await services.sendTo(`ada+${tries}@example.com`)
      for (let one = 0; one < MAX_CODE_TRIES; one++)
        assert.equal(await typeWrongCode(services, mailedLink, { ip: unusedIp() }), INVALID_CODE)
    }
    const mailedLink = await services.sendTo('ada@example.com')
    const { code, extras } = await refusalOf(services, mailedLink)
    assert.deepEqual([code, extras.retryAfter, extras.window], [RATE_LIMITED, CODE_WINDOW / 1000, 'day'])
    assert.equal(await useLink(services, mailedLink), 'none')
    assert.equal(
      await typeCode(services, await services.sendTo('eve@example.com')),
      'none',
      'other mailboxes are not affected',
    )
  })

  const countedNetworks: [name: string, ip: (host: number) => string, limit: number, outside: string][] = [
    ['an IPv4 address', () => '192.0.2.9', WRONG_CODES_PER_NETWORK[0]!.limit, '192.0.2.8'],
    ['an IPv4 /24', host => `192.0.2.${host}`, WRONG_CODES_PER_NETWORK[1]!.limit, '192.0.3.1'],
    ['an IPv6 /64', host => `2001:db8:1:1::${host}`, WRONG_CODES_PER_NETWORK[0]!.limit, '2001:db8:1:2::1'],
    ['an IPv6 /56', host => `2001:db8:1:${host}::1`, WRONG_CODES_PER_NETWORK[1]!.limit, '2001:db8:1:100::1'],
    ['an IPv6 /48', host => `2001:db8:1:${host}00::1`, WRONG_CODES_PER_NETWORK[2]!.limit, '2001:db8:2::1'],
  ]
  for (const [name, ip, limit, outside] of countedNetworks) {
    test(`wrong codes are limited per day and network: ${name}`, async t => {
      const services = await openServices(engine, t)
      for (let tries = 0; tries < limit; tries++)
        assert.equal(
          await typeWrongCode(services, await linkToNewAddress(services), { ip: ip(tries + 1) }),
          INVALID_CODE,
        )
      const mailedLink = await services.sendTo('ada@example.com')
      assert.equal(await typeCode(services, mailedLink, { ip: ip(99) }), RATE_LIMITED)
      assert.equal(await typeCode(services, mailedLink, { ip: outside }), 'none')
    })
  }

  test('wrong codes from unknown browsers are limited service-wide: then codes are refused for a day, and links work', async t => {
    const services = await openServices(engine, t)
    await useUpServiceLimit(services)
    const mailedLink = await services.sendTo('ada@example.com')
    assert.equal(await typeCode(services, mailedLink, { ip: unusedIp() }), RATE_LIMITED)
    assert.equal(await useLink(services, mailedLink), 'none')
    services.clock.advance(CODE_WINDOW - 1)
    assert.equal(await typeCode(services, await linkToNewAddress(services), { ip: unusedIp() }), RATE_LIMITED)
    services.clock.advance(1)
    assert.equal(await typeCode(services, await linkToNewAddress(services), { ip: unusedIp() }), 'none')
  })

  test('the log says once that wrong codes reached the service-wide limit', async t => {
    const lines: string[] = []
    const write = (line: string) => {
      const { hours, msg } = JSON.parse(line)
      lines.push(`${hours} hours: ${msg}`)
    }
    const log = createLog('info', { write })
    const services = await openServices(engine, t, { log })
    const expiredLink = await linkToNewAddress(services)
    services.clock.advance(MAGIC_LINK_LIFETIME)
    assert.equal(await typeWrongCode(services, expiredLink), INVALID_CODE)
    for (let tries = 1; tries < WRONG_CODES_UNRECOGNISED; tries++)
      await typeWrongCode(services, await linkToNewAddress(services), { ip: unusedIp() })
    assert.equal(lines.length, 0)
    await typeWrongCode(services, await linkToNewAddress(services), { ip: unusedIp() })
    assert.equal(lines.length, 1)
    assert.match(lines[0]!, /^24 hours: wrong codes reached the service-wide limit/)
    await typeWrongCode(services, await linkToNewAddress(services), { isReturning: true })
    assert.equal(lines.length, 1, 'a recognised browser has a limit of its own')
  })

  test('concurrent guesses on two nodes are checked only up to the limits, also after a restart', async t => {
    const services = await openServices(engine, t)
    const node = await services.opened.reopen()
    const otherNode = await openServices(engine, t, { on: { node, of: services.opened } })
    const links: MailedLink[] = []
    for (let link = 0; link < 8; link++) links.push(await linkToNewAddress(services))
    const outcomes = await Promise.all(
      Array.from({ length: 80 }, (_, index) =>
        typeWrongCode(index % 2 ? services : otherNode, links[index % 8]!, { ip: unusedIp() }),
      ),
    )
    assert.equal(outcomes.filter(outcome => outcome === INVALID_CODE).length, WRONG_CODES_UNRECOGNISED)
    assert.equal(outcomes.filter(outcome => outcome === RATE_LIMITED).length, 80 - WRONG_CODES_UNRECOGNISED)
    const reopenedNode = await services.opened.reopen()
    const restartedNode = await openServices(engine, t, { on: { node: reopenedNode, of: services.opened } })
    assert.equal(
      await typeCode(restartedNode, await linkToNewAddress(services), { ip: unusedIp() }),
      RATE_LIMITED,
    )
  })

  test('a refused code writes nothing, and does not extend the wait', async t => {
    const services = await openServices(engine, t)
    await useUpServiceLimit(services)
    const mailedLink = await linkToNewAddress(services)
    const rowsBefore = await wrongCodeRows(services)
    for (let again = 0; again < 10; again++) {
      services.clock.advance(1000)
      const { extras } = await refusalOf(services, mailedLink)
      assert.equal(extras.retryAfter, CODE_WINDOW / 1000 - again - 1)
    }
    assert.deepEqual(await wrongCodeRows(services), rowsBefore)
  })

  test('the right code clears the wrong ones before it', async t => {
    const services = await openServices(engine, t)
    for (let person = 0; person < WRONG_CODES_UNRECOGNISED; person++) {
      const mailedLink = await linkToNewAddress(services)
      assert.equal(await typeWrongCode(services, mailedLink, { ip: unusedIp() }), INVALID_CODE)
      assert.equal(await typeCode(services, mailedLink, { ip: unusedIp() }), 'none')
    }
    assert.equal((await wrongCodeRows(services)).length, 0)
  })

  test('the link clears wrong codes only in the browser that requested it', async t => {
    const services = await openServices(engine, t)
    const [ownLink, otherLink] = [await linkToNewAddress(services), await linkToNewAddress(services)]
    for (const sent of [ownLink, otherLink]) await typeWrongCode(services, sent, { ip: unusedIp() })
    assert.equal(await useLink(services, ownLink, [ownLink.loginId]), 'none')
    assert.equal(await useLink(services, otherLink, [ownLink.loginId]), 'none')
    assert.deepEqual(
      (await wrongCodeRows(services)).map(row => row.link_id),
      [otherLink.loginId],
    )
  })

  test('a browser with an earlier sign-in has its own limit of wrong codes, which others cannot use up', async t => {
    const services = await openServices(engine, t)
    await useUpServiceLimit(services)
    const fromReturningBrowser = { isReturning: true }
    assert.equal(
      await typeCode(services, await services.sendTo('ada@example.com'), fromReturningBrowser),
      'none',
    )
    for (let tries = 0; tries < WRONG_CODES_RECOGNISED; tries++)
      assert.equal(
        await typeWrongCode(services, await services.sendTo('ada@example.com'), fromReturningBrowser),
        INVALID_CODE,
      )
    assert.equal(
      await typeCode(services, await services.sendTo('ada@example.com'), fromReturningBrowser),
      RATE_LIMITED,
    )
    assert.equal(
      await typeCode(services, await services.sendTo('eve@example.com'), fromReturningBrowser),
      'none',
    )
  })

  test('codes from a browser with an earlier sign-in are checked while other checks are queued', async t => {
    const services = await openServices(engine, t)
    const mailedLink = await services.sendTo('ada@example.com')
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const waitingCalls = Array.from({ length: MAX_WAITING_PER_KEY + 1 }, () =>
      services.storage.runExclusive([UNRECOGNISED_QUEUE], () => gate),
    )
    // On SQLite `runExclusive` queues nobody, since transactions are serialized anyway.
    if (engine === 'postgres') assert.equal(await typeCode(services, mailedLink), RATE_LIMITED)
    assert.equal(await typeCode(services, mailedLink, { isReturning: true }), 'none')
    open()
    await Promise.all(waitingCalls)
  })

  test('wrong codes from browsers with an earlier sign-in do not count for other browsers', async t => {
    const services = await openServices(engine, t)
    for (let person = 0; person < WRONG_CODES_UNRECOGNISED; person++)
      await typeWrongCode(services, await linkToNewAddress(services), { isReturning: true })
    assert.equal(await typeCode(services, await linkToNewAddress(services)), 'none')
  })

  test('clear-limits resets the limits of an address, but not the service-wide limit', async t => {
    const services = await openServices(engine, t)
    const ada = 'ada@example.com'
    const fromReturningBrowser = { isReturning: true }
    const clearLimits = () => runCommand(services, 'users clear-limits', ada)
    for (let tries = 0; tries < WRONG_CODES_RECOGNISED; tries++)
      await typeWrongCode(services, await services.sendTo(ada), fromReturningBrowser)
    for (let tries = 0; tries < WRONG_CODES_PER_MAILBOX; tries++)
      await typeWrongCode(services, await services.sendTo(ada), { ip: unusedIp() })
    assert.equal(await typeCode(services, await services.sendTo(ada), fromReturningBrowser), RATE_LIMITED)
    assert.equal(await typeCode(services, await services.sendTo(ada)), RATE_LIMITED)
    await clearLimits()
    for (let tries = WRONG_CODES_PER_MAILBOX; tries < WRONG_CODES_UNRECOGNISED; tries++) {
      if (tries % WRONG_CODES_PER_MAILBOX === 0) await clearLimits()
      assert.equal(
        await typeWrongCode(services, await services.sendTo(ada), { ip: unusedIp() }),
        INVALID_CODE,
      )
    }
    await clearLimits()
    assert.equal(await typeCode(services, await services.sendTo(ada)), RATE_LIMITED, 'the service-wide limit')
    assert.equal(await typeCode(services, await services.sendTo(ada), fromReturningBrowser), 'none')
  })

  test('a wrong code for a suspended account is refused like any other', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('held@example.com')
    await services.users.suspend(user.id)
    const linkOfSuspended = await services.sendTo('held@example.com')
    const linkOfActive = await services.sendTo('free@example.com')
    const answers = [linkOfSuspended, linkOfActive].map(sent =>
      refusalOf(services, sent, wrongCode(sent.code)),
    )
    const [refusalOfSuspended, refusalOfActive] = await Promise.all(answers)
    assert.equal(refusalOfSuspended!.code, INVALID_CODE)
    assert.deepEqual(
      [refusalOfSuspended!.code, refusalOfSuspended!.message, refusalOfSuspended!.extras],
      [refusalOfActive!.code, refusalOfActive!.message, refusalOfActive!.extras],
    )
    assert.equal(
      await typeCode(services, linkOfSuspended),
      'account_suspended',
      'the right code is reported as suspended',
    )
  })
})

interface TypedFrom {
  ip?: string
  isReturning?: boolean
}

let personCount = 0
let hostCount = 0

/** An address in a network that was not used before, whatever prefix length is counted. */
function unusedIp(): string {
  hostCount++
  return `10.${hostCount >> 8}.${hostCount & 255}.1`
}

/** A link to an address not used before. */
async function linkToNewAddress(services: Services): Promise<MailedLink> {
  return services.sendTo(`person-${personCount++}@example.com`)
}

async function verifyCode(services: Services, { loginId }: MailedLink, code: string, typed: TypedFrom) {
  const link = await services.store.magicLinks.find(loginId)
  const proof = { loginId, code, email: address(link!.email), isReturning: typed.isReturning }
  return services.magicLinks.verify(proof, 'page', caller(typed.ip))
}

function typeCode(services: Services, sent: MailedLink, typed: TypedFrom = {}): Promise<string> {
  return refusedWith(verifyCode(services, sent, sent.code, typed))
}

function typeWrongCode(services: Services, sent: MailedLink, typed: TypedFrom = {}): Promise<string> {
  return refusedWith(verifyCode(services, sent, wrongCode(sent.code), typed))
}

async function refusalOf(services: Services, sent: MailedLink, code = sent.code): Promise<KeywayError> {
  const error = await verifyCode(services, sent, code, {}).then(
    () => null,
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof KeywayError)
  return error
}

async function useLink(services: Services, { loginId, token }: MailedLink, requestedLoginIds?: string[]) {
  const link = await services.store.magicLinks.find(loginId)
  const proof = { token, email: address(link!.email), requestedLoginIds }
  return refusedWith(services.magicLinks.verify(proof, 'page', caller()))
}

function wrongCode(code: string): string {
  return `${code.slice(0, -1)}${(Number(code.at(-1)) + 1) % 10}`
}

async function useUpServiceLimit(services: Services): Promise<void> {
  for (let tries = 0; tries < WRONG_CODES_UNRECOGNISED; tries++)
    assert.equal(
      await typeWrongCode(services, await linkToNewAddress(services), { ip: unusedIp() }),
      INVALID_CODE,
    )
}

async function wrongCodeRows({ opened }: Services): Promise<{ link_id: string }[]> {
  const sql = 'select * from wrong_codes order by id'
  const { rows: found } = await opened.storage.engine.connection.execute(sql, [])
  return found as { link_id: string }[]
}
