import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { rateWindows } from '../../src/config/rate-windows.ts'
import { KeywayError } from '../../src/errors.ts'
import { addressBucketName } from '../../src/magic-links/send-limits.ts'
import { forEachEngine, type TestStorage } from '../support/engines.ts'
import { withClient } from '../support/postgres.ts'
import { address, caller, openServices, race, refusedWith, type Services } from '../support/services.ts'

const perMinute = (limit: number) => ({ window: 'minute' as const, limit })
const perHour = (limit: number) => ({ window: 'hour' as const, limit })
const perDay = (limit: number) => ({ window: 'day' as const, limit })

function send({ magicLinks }: Services, email = 'a@example.com', ip = '192.0.2.1') {
  return magicLinks.send({ email: address(email), appId: 'console' }, caller(ip))
}

async function refusalOf(call: Promise<unknown>) {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof KeywayError, 'the send was accepted')
  assert.equal(error.code, 'rate_limited')
  const { retryAfter, window, setting } = error.extras
  return { retryAfter, window, setting }
}

const ADDRESS_SETTING = 'KEYWAY_MAGIC_LINK_LIMITS'
const NETWORK_SETTING = 'KEYWAY_MAGIC_LINK_NETWORK_LIMITS'

forEachEngine(engine => {
  test('sends up to the limit succeed, and the next is refused with the wait', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(3)] })
    for (let sent = 0; sent < 3; sent++) await send(services)
    services.clock.advance(500)
    assert.deepEqual(await refusalOf(send(services)), {
      retryAfter: 60,
      window: 'minute',
      setting: ADDRESS_SETTING,
    })
    assert.equal((await services.mailsTo('a@example.com', 'sign_in')).length, 3)
    assert.equal(await refusedWith(send(services, 'b@example.com')), 'none')
  })

  test('the limits that an address has reached are reported with their wait, to the last millisecond', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(1)] })
    const { magicLinks, clock } = services
    const email = address('a@example.com')
    const noLimits = { mails: null, returningMails: null, codesBlockedUntil: null }
    assert.deepEqual(await magicLinks.limitsOf(email), noLimits)
    await send(services)
    const { mails, ...others } = await magicLinks.limitsOf(email)
    assert.deepEqual([mails?.retryAfter, mails?.window], [60, 'minute'])
    assert.deepEqual(others, { returningMails: null, codesBlockedUntil: null })
    await magicLinks.send({ email, appId: 'console', isReturning: true }, caller())
    clock.advance(59_999)
    assert.equal((await magicLinks.limitsOf(email)).returningMails?.retryAfter, 1)
    assert.deepEqual(await magicLinks.limitsOf(address('b@example.com')), noLimits)
    clock.advance(1)
    assert.deepEqual(await magicLinks.limitsOf(email), noLimits)
  })

  test('a send at t counts until just before t + 60 s', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(1)] })
    await send(services)
    services.clock.advance(59_999)
    assert.equal((await refusalOf(send(services))).retryAfter, 1)
    services.clock.advance(1)
    assert.equal(await refusedWith(send(services)), 'none')
  })

  test('a send after the announced wait succeeds', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(1), perHour(2)] })
    await send(services)
    for (let wait = 0; wait < 3; wait++) {
      services.clock.advance(333)
      const { retryAfter } = await refusalOf(send(services))
      services.clock.advance(retryAfter! * 1000)
      assert.equal(await refusedWith(send(services)), 'none')
    }
  })

  test('windows slide: no minute contains more sends than the limit', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(2)] })
    const acceptedAt: number[] = []
    for (let step = 0; step < 60; step++) {
      if ((await refusedWith(send(services))) === 'none') acceptedAt.push(services.clock.now())
      services.clock.advance(7001)
    }
    for (const start of acceptedAt) {
      assert.ok(acceptedAt.filter(at => at >= start && at < start + 60_000).length <= 2)
    }
    assert.ok(acceptedAt.length >= 12)
  })

  test('the refusal contains the longest wait and its window', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(2), perHour(3), perDay(4)] })
    await send(services)
    services.clock.advance(60_000)
    await send(services)
    await send(services)
    assert.deepEqual(await refusalOf(send(services)), {
      retryAfter: 3540,
      window: 'hour',
      setting: ADDRESS_SETTING,
    })
    services.clock.advance(3_540_000)
    await send(services)
    assert.deepEqual(await refusalOf(send(services)), {
      retryAfter: 86_400 - 3600,
      window: 'day',
      setting: ADDRESS_SETTING,
    })
  })

  test('of two windows with the same limit the longer one applies', async t => {
    const services = await openServices(engine, t, { limits: rateWindows('2/minute,2/hour') })
    await send(services)
    await send(services)
    const expectedRefusal = { retryAfter: 3600, window: 'hour', setting: ADDRESS_SETTING }
    assert.deepEqual(await refusalOf(send(services)), expectedRefusal)
    services.clock.advance(3_600_000)
    assert.equal(await refusedWith(send(services)), 'none')
  })

  test('refused sends write nothing and do not extend the wait', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(1)], networkLimits: [perMinute(10)] })
    await send(services)
    for (let again = 0; again < 20; again++) {
      services.clock.advance(1000)
      assert.equal((await refusalOf(send(services))).retryAfter, 59 - again)
    }
    services.clock.advance(40_000)
    assert.equal(await refusedWith(send(services)), 'none')
    assert.equal((await services.mailsTo('a@example.com', 'sign_in')).length, 2)
  })

  test('a network has its own limit over all addresses', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(5)], networkLimits: [perMinute(2)] })
    await send(services, 'a@example.com')
    await send(services, 'b@example.com')
    assert.deepEqual(await refusalOf(send(services, 'c@example.com')), {
      retryAfter: 60,
      window: 'minute',
      setting: NETWORK_SETTING,
    })
    assert.equal(await refusedWith(send(services, 'c@example.com', '192.0.2.2')), 'none')
  })

  test('a send refused by the network limit does not count for the address, and vice versa', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(1)], networkLimits: [perMinute(2)] })
    await send(services, 'a@example.com')
    assert.equal(await refusedWith(send(services, 'a@example.com')), 'rate_limited')
    await send(services, 'b@example.com')
    assert.equal(await refusedWith(send(services, 'c@example.com')), 'rate_limited')
    assert.equal(await refusedWith(send(services, 'c@example.com', '192.0.2.2')), 'none')
  })

  test('an IPv6 /64 is one network', async t => {
    const services = await openServices(engine, t, { networkLimits: [perMinute(1)] })
    await send(services, 'a@example.com', '2001:db8:0:1::1')
    assert.equal(await refusedWith(send(services, 'b@example.com', '2001:db8:0:1:ffff::2')), 'rate_limited')
    assert.equal(await refusedWith(send(services, 'b@example.com', '2001:db8:0:2::1')), 'none')
  })

  test('all spellings of an address share one bucket', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(2)] })
    await send(services, 'Foo@X.Test')
    await send(services, ' foo@x.test ')
    assert.equal(await refusedWith(send(services, 'FOO@X.TEST')), 'rate_limited')
  })

  test('all +tags of a mailbox share its limit, and each is an address of its own', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(3)] })
    const { user } = await services.signIn('foo@x.test')
    const signInWithTag = await services.signIn('foo+1@x.test')
    assert.notEqual(signInWithTag.user.id, user.id)
    assert.equal(signInWithTag.user.email, 'foo+1@x.test')
    await send(services, 'foo+2+3@x.test')
    assert.equal(await refusedWith(send(services, 'Foo+4@x.test')), 'rate_limited')
    assert.equal(await refusedWith(send(services, 'foo@x.test')), 'rate_limited')
    assert.equal(await refusedWith(send(services, '+foo@x.test')), 'none', 'a leading + begins no tag')
    assert.equal(await refusedWith(send(services, 'fo+o@x.test')), 'none')
  })

  test('deleting the account of a tagged address does not clear the limit of its mailbox', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(2)] })
    const { user } = await services.signIn('ada+x@x.test')
    await send(services, 'ada@x.test')
    await services.users.delete(user.id)
    assert.equal(await refusedWith(send(services, 'ada@x.test')), 'rate_limited')
  })

  test('all networks of an IPv6 /48 together have sixteen times the limit of one', async t => {
    const services = await openServices(engine, t, { networkLimits: [perMinute(2)] })
    const outcomes: string[] = []
    for (let network = 0; network < 40; network++) {
      const from = `2001:db8:7:${network.toString(16)}::1`
      outcomes.push(await refusedWith(send(services, `v6-${network}@example.com`, from)))
    }
    assert.equal(outcomes.filter(outcome => outcome === 'none').length, 2 * 16)
    assert.equal(await refusedWith(send(services, 'other@example.com', '2001:db8:8::1')), 'none')
  })

  test('a refused send changes nothing in the database', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(3)], networkLimits: [perMinute(5)] })
    for (let sent = 0; sent < 3; sent++) await send(services)
    const writesBefore = await writeFingerprint(services.opened)
    const { refused } = await race(50, () => send(services))
    assert.deepEqual(refused, Array(50).fill('rate_limited'))
    await send(services, 'b@example.com').catch(() => {})
    await send(services, 'c@example.com').catch(() => {})
    const writesAtLimit = await writeFingerprint(services.opened)
    assert.notDeepEqual(writesAtLimit, writesBefore, 'an accepted send changes rows')
    const sendsOfNetwork = await race(50, index => send(services, `never-seen-${index}@example.com`))
    assert.deepEqual(sendsOfNetwork.refused, Array(50).fill('rate_limited'), 'refused by the network limit')
    assert.deepEqual(await writeFingerprint(services.opened), writesAtLimit)
  })

  test('of forty concurrent sends exactly as many succeed as the limit allows', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(7), perHour(20)] })
    const { won, refused } = await race(40, () => send(services))
    assert.equal(won.length, 7)
    assert.deepEqual(refused, Array(33).fill('rate_limited'))
    assert.equal((await services.mailsTo('a@example.com', 'sign_in')).length, 7)
  })

  test('nodes share one count', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(4)] })
    const node = await services.opened.reopen()
    const otherNode = await openServices(engine, t, {
      limits: [perMinute(4)],
      on: { node, of: services.opened },
    })
    const { won } = await race(20, index => send(index % 2 ? services : otherNode))
    assert.equal(won.length, 4)
  })

  test('a clock that steps back neither opens a limit nor blocks it', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(1), perDay(3)] })
    const startTime = services.clock.now()
    await send(services)
    services.clock.set(startTime - 3_600_000)
    assert.deepEqual((await refusalOf(send(services))).retryAfter, 60)
    services.clock.advance(60_000)
    assert.equal(await refusedWith(send(services)), 'none')
  })

  test('a send from before the clock stepped back counts no longer than its window, even if others are refused before it', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(2)] })
    await send(services)
    services.clock.advance(30_000)
    await send(services)
    services.clock.advance(-30_000)
    assert.deepEqual((await refusalOf(send(services))).retryAfter, 60)
    services.clock.advance(60_000)
    await send(services)
    assert.equal(await refusedWith(send(services)), 'none')
  })

  test('the operator can clear the count of an address', async t => {
    const services = await openServices(engine, t, { limits: [perMinute(1)] })
    await send(services)
    await services.store.magicLinks.clearSends(addressBucketName(address('a@example.com')))
    assert.equal(await refusedWith(send(services)), 'none')
  })
})

/**
 * Returns a value that every write changes: on SQLite the rows and the write-ahead log, on PostgreSQL the versions of
 * the rows that count sends.
 */
async function writeFingerprint({ config }: TestStorage): Promise<unknown> {
  const { database } = config
  if (database.engine === 'sqlite') {
    const file = new DatabaseSync(database.file, { readOnly: true })
    const tables = ['send_buckets', 'sends', 'magic_links', 'messages']
    const rows = tables.map(table => file.prepare(`select * from ${table}`).all())
    file.close()
    return {
      rows,
      log: statSync(`${database.file}-wal`).mtimeMs,
      size: statSync(`${database.file}-wal`).size,
    }
  }
  return withClient(database.url, async client => {
    const versions = await client.query(
      `select 'bucket', bucket, xmin::text, xmax::text, ctid::text from send_buckets
        union all select 'send', bucket, xmin::text, xmax::text, ctid::text from sends order by 1, 2, 5`,
    )
    return { versions: versions.rows }
  })
}
