import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { DAY, MINUTE } from '../../src/clock.ts'
import { loadConfig } from '../../src/config.ts'
import { readResend } from '../../src/mail/hooks/resend.ts'
import { createDispatcher } from '../../src/outbox/dispatcher.ts'
import type { Mail } from '../../src/outbox/outbox.ts'
import { hmac } from '../../src/secrets.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { basicAuthorization, openServer } from '../support/http.ts'
import { MAIL_HOOK_SECRET } from '../support/http-ports.ts'
import { plainMail } from '../support/plain-mail.ts'
import { address } from '../support/services.ts'
import { startKeyway } from './running.ts'

type Server = Awaited<ReturnType<typeof openServer>>

/** A request signed as Resend signs it; `falsified` replaces headers. */
function resendRequest(server: Server, event: unknown, falsified: Record<string, string> = {}) {
  const body = typeof event === 'string' ? event : JSON.stringify(event)
  const id = 'msg_2b6bQ5'
  const time = falsified['svix-timestamp'] ?? String(Math.floor(server.clock.now() / 1000))
  const key = Buffer.from(MAIL_HOOK_SECRET.slice('whsec_'.length), 'base64')
  const signature = `v1,${hmac(key, `${id}.${time}.${body}`).toString('base64')}`
  const headers = {
    'Content-Type': 'application/json',
    'svix-id': id,
    'svix-timestamp': time,
    'svix-signature': `v1,b3RoZXI= ${signature}`,
    ...falsified,
  }
  return { body, headers }
}

const bounceEvent = (to: string, type = 'Permanent') => ({
  type: 'email.bounced',
  created_at: '2026-11-20T12:00:00.000Z',
  data: { email_id: 'e1', to: [to], bounce: { type, subType: 'General', message: 'no such user' } },
})

async function open(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t)
  const sentMails: Mail[] = []
  const dispatcher = createDispatcher({
    ...server,
    mailer: {
      deliver: async mail => void sentMails.push(mail),
      check: async () => {},
      close: () => {},
    },
    write: plainMail,
  })
  return {
    ...server,
    server,
    sent: sentMails,
    drain: () => dispatcher.drain(),
    resend: (event: unknown, falsified?: Record<string, string>) =>
      server.call('POST', '/hooks/mail/resend', resendRequest(server, event, falsified)),
    postmark: (body: unknown, secret = MAIL_HOOK_SECRET) =>
      server.call('POST', '/hooks/mail/postmark', { body, headers: basicAuthorization('keyway', secret) }),
    suppressed: (email: string) => server.store.suppressions.find(address(email), server.clock.now()),
  }
}

forEachEngine(engine => {
  test('an address gets no mail for 7 days after a bounce', async t => {
    const { resend, post, drain, sent, clock, suppressed } = await open(engine, t)
    assert.equal((await resend(bounceEvent('Gone@example.com'))).status, 204)
    const suppression = await suppressed('gone@example.com')
    assert.deepEqual([suppression!.reason, suppression!.provider], ['bounce', 'resend'])
    await post('/auth/send-magic-link', { email: 'gone@example.com' })
    await post('/auth/send-magic-link', { email: 'there@example.com' })
    await drain()
    assert.deepEqual(
      sent.map(({ to }) => to),
      ['there@example.com'],
    )
    clock.advance(7 * DAY - 1)
    assert.ok(await suppressed('gone@example.com'))
    clock.advance(1)
    await post('/auth/send-magic-link', { email: 'gone@example.com' })
    await drain()
    assert.equal(sent.at(-1)!.to, 'gone@example.com')
  })

  test('the response to a send is the same for a suppressed address', async t => {
    const { resend, post } = await open(engine, t)
    await resend(bounceEvent('gone@example.com'))
    const [gone, there] = await Promise.all([
      post('/auth/send-magic-link', { email: 'gone@example.com' }),
      post('/auth/send-magic-link', { email: 'there@example.com' }),
    ])
    assert.deepEqual([gone.status, Object.keys(gone.body)], [there.status, Object.keys(there.body)])
    assert.deepEqual([gone.body.status, gone.body.expires_in], ['sent', 300])
  })

  test('complaints and permanent bounces suppress an address; transient bounces and other events do not', async t => {
    const { resend, postmark, suppressed } = await open(engine, t)
    const answers = [
      await resend({ type: 'email.complained', data: { to: ['a@example.com'] } }),
      await resend(bounceEvent('soft@example.com', 'Transient')),
      await resend({ type: 'email.delivered', data: { to: ['soft@example.com'] } }),
      await resend({ type: 'something.new' }),
      await resend(bounceEvent('no address at all')),
      await postmark({ RecordType: 'Bounce', Type: 'HardBounce', TypeCode: 1, Email: 'b@example.com' }),
      await postmark({ RecordType: 'SpamComplaint', Email: 'c@example.com' }),
      await postmark({ RecordType: 'Bounce', Type: 'SoftBounce', Email: 'soft@example.com' }),
      await postmark({ RecordType: 'Open', Email: 'soft@example.com' }),
    ]
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([204]))
    for (const [email, reason] of [
      ['a@example.com', 'complaint'],
      ['b@example.com', 'bounce'],
      ['c@example.com', 'complaint'],
    ])
      assert.equal((await suppressed(email!))?.reason, reason)
    assert.equal(await suppressed('soft@example.com'), null)
  })

  test('reports with missing, wrong, old, future or moved signatures or wrong passwords are refused', async t => {
    const { server, resend, postmark, suppressed, post, clock } = await open(engine, t)
    const event = bounceEvent('victim@example.com')
    const timestampAt = (ms: number) => String(Math.floor((clock.now() + ms) / 1000))
    const otherReport = resendRequest(server, bounceEvent('other@example.com'))
    const refusals = [
      await post('/hooks/mail/resend', event),
      await resend(event, { 'svix-signature': 'v1,AAAA' }),
      await resend(event, { 'svix-signature': otherReport.headers['svix-signature'] }),
      await resend(event, { 'svix-id': 'msg_another' }),
      await resend(event, { 'svix-timestamp': timestampAt(-6 * MINUTE) }),
      await resend(event, { 'svix-timestamp': timestampAt(6 * MINUTE) }),
      await resend(event, { 'svix-timestamp': '1e9' }),
      await post('/hooks/mail/postmark', { RecordType: 'SpamComplaint', Email: 'victim@example.com' }),
      await postmark({ RecordType: 'SpamComplaint', Email: 'victim@example.com' }, 'wrong'),
      await postmark({ RecordType: 'SpamComplaint', Email: 'victim@example.com' }, ''),
    ]
    assert.deepEqual(new Set(refusals.map(({ status }) => status)), new Set([401]))
    assert.equal(await suppressed('victim@example.com'), null)
    assert.equal((await resend('[1]')).status, 400)
    assert.equal((await resend('{')).status, 400)
    assert.equal((await post('/hooks/mail/elsewhere', event)).status, 404)
  })

  test('a secret that is not of Resend’s form authenticates no report of Resend, not even with an empty key', () => {
    const now = Date.UTC(2026, 10, 20)
    const body = Buffer.from(JSON.stringify(bounceEvent('victim@example.com')))
    const time = String(now / 1000)
    for (const secret of ['!!!!!!!!!!!!!!!!!!!!', '$%&/()=?$%&/()=?', 'a postmark password']) {
      const key = Buffer.from(secret, 'base64')
      const signature = `v1,${hmac(key, Buffer.concat([Buffer.from(`id.${time}.`), body])).toString('base64')}`
      const headers: Record<string, string> = {
        'svix-id': 'id',
        'svix-timestamp': time,
        'svix-signature': signature,
      }
      assert.equal(readResend({ header: name => headers[name], body }, secret, now), 'forged')
    }
  })

  test('a second report extends a suppression, and the operator can lift it', async t => {
    const { resend, suppressed, clock, store } = await open(engine, t)
    await resend(bounceEvent('gone@example.com'))
    clock.advance(DAY)
    await resend(bounceEvent('gone@example.com'))
    assert.equal((await suppressed('gone@example.com'))!.until, clock.now() + 7 * DAY)
    assert.equal(await store.suppressions.lift(address('gone@example.com')), true)
    assert.equal(await store.suppressions.lift(address('gone@example.com')), false)
    assert.equal(await suppressed('gone@example.com'), null)
  })
})

test('reports are accepted only if a secret is set; otherwise the path is 404', async t => {
  const report = JSON.stringify({ RecordType: 'Bounce', Type: 'HardBounce', Email: 'gone@example.com' })
  const post = (url: string, secret: string) =>
    fetch(`${url}/hooks/mail/postmark`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...basicAuthorization('keyway', secret) },
      body: report,
    })
  const secret = 'a-random-text-of-ours-0123456789'
  const configuredServer = await startKeyway(t, { KEYWAY_MAIL_HOOK_SECRET: secret })
  assert.equal((await post(configuredServer.url, secret)).status, 204)
  assert.ok(await configuredServer.services.suppressions.find(address('gone@example.com')))
  assert.equal((await post(configuredServer.url, `${secret}x`)).status, 401)
  const unconfiguredServer = await startKeyway(t)
  assert.equal((await post(unconfiguredServer.url, secret)).status, 404)
  assert.equal((await post(unconfiguredServer.url, '')).status, 404)
})

test('a short hook secret is refused', () => {
  for (const text of ['short', 'with a space in it', 'whsec_c2hvcnQ='])
    assert.throws(() => loadConfig({ KEYWAY_MAIL_HOOK_SECRET: text }), /KEYWAY_MAIL_HOOK_SECRET must be/)
  const config = loadConfig({ KEYWAY_MAIL_HOOK_SECRET: MAIL_HOOK_SECRET })
  assert.equal(config.mailHookSecret, MAIL_HOOK_SECRET)
})
