import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { createPostmarkMailer, createResendMailer } from '../../src/mail/http-api.ts'
import { type Mail, MailRejected } from '../../src/outbox/outbox.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'

const from = { name: 'Keyway "Q"', address: 'no-reply@sender.test' }
const neverAbortedSignal = new AbortController().signal
const mail: Mail = {
  messageId: '0190a5b8-7c3e-7abc-8def-0123456789ab',
  to: parseEmailAddress('ada@example.com')!,
  subject: 'Subject',
  text: 'Text',
  html: '<p>HTML</p>',
  template: 'test',
  link: null,
  code: null,
}

interface Call {
  method: string
  url: string
  headers: IncomingMessage['headers']
  // biome-ignore lint/suspicious/noExplicitAny: the body is any JSON
  body: any
}

async function startProvider(
  t: TestContext,
  answer: (call: Call) => { status: number; body?: string; headers?: Record<string, string> } | 'hang',
) {
  const calls: Call[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { method = '', url = '', headers } = request
    const call = { method, url, headers, body: body ? JSON.parse(body) : null }
    calls.push(call)
    const reply = answer(call)
    if (reply === 'hang') return server.emit('hanging')
    response.writeHead(reply.status, reply.headers).end(reply.body ?? '{}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const requestHangs = new Promise<void>(resolve => server.once('hanging', resolve))
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    hanging: requestHangs,
  }
}

describe('mail by Resend', () => {
  test('is one request with the message’s id as idempotency key', async t => {
    const { baseUrl, calls } = await startProvider(t, () => ({ status: 200, body: '{"id":"x"}' }))
    await createResendMailer('re_key', { from, baseUrl }).deliver(mail, neverAbortedSignal)
    assert.equal(calls.length, 1)
    const { method, url, headers, body } = calls[0]!
    assert.deepEqual([method, url], ['POST', '/emails'])
    assert.equal(headers.authorization, 'Bearer re_key')
    assert.equal(headers['idempotency-key'], mail.messageId)
    assert.equal(body.from, '"Keyway \\"Q\\"" <no-reply@sender.test>')
    assert.deepEqual(body.to, ['ada@example.com'])
    assert.equal(body.text, 'Text')
    assert.equal(body.html, '<p>HTML</p>')
    assert.equal(body.headers['Auto-Submitted'], 'auto-generated')
  })

  test('accepts a key that may only send', async t => {
    const body = '{"name":"restricted_api_key"}'
    const { baseUrl } = await startProvider(t, () => ({ status: 401, body }))
    await createResendMailer('re_key', { from, baseUrl }).check()
  })
})

describe('mail by Postmark', () => {
  test('is one request without tracking and with the Message-ID of the outbox', async t => {
    const { baseUrl, calls } = await startProvider(t, () => ({ status: 200, body: '{"ErrorCode":0}' }))
    const mailer = createPostmarkMailer('token', { from, baseUrl })
    await mailer.deliver(mail, neverAbortedSignal)
    await mailer.check()
    const { url, headers, body } = calls[0]!
    assert.equal(url, '/email')
    assert.equal(headers['x-postmark-server-token'], 'token')
    assert.equal(body.To, 'ada@example.com')
    assert.equal(body.TrackOpens, false)
    assert.equal(body.TrackLinks, 'None')
    const headersByName = Object.fromEntries(
      body.Headers.map((header: { Name: string; Value: string }) => [header.Name, header.Value]),
    )
    assert.equal(headersByName['Message-ID'], `<${mail.messageId}@sender.test>`)
    assert.equal(headersByName['Auto-Submitted'], 'auto-generated')
    assert.equal(calls[1]!.url, '/server')
  })
})

for (const [name, create] of [
  ['Resend', createResendMailer],
  ['Postmark', createPostmarkMailer],
] as const) {
  describe(`${name}'s answers`, () => {
    test('a rejected mail is not retried; after rate limits, outages and refused credentials it is', async t => {
      let status = 0
      const { baseUrl } = await startProvider(t, () => ({ status, body: '{"message":"no"}' }))
      const mailer = create('secret-key', { from, baseUrl })
      for (status of [400, 406, 422])
        await assert.rejects(mailer.deliver(mail, neverAbortedSignal), MailRejected)
      for (status of [401, 403, 408, 409, 429, 500, 502, 503]) {
        await assert.rejects(mailer.deliver(mail, neverAbortedSignal), error => {
          assert.ok(error instanceof Error && !(error instanceof MailRejected))
          assert.doesNotMatch(error.message, /secret-key/)
          return true
        })
      }
      await assert.rejects(mailer.check())
    })

    test('a redirect is not followed, so that the credential is not sent elsewhere', async t => {
      const redirectTarget = await startProvider(t, () => ({ status: 200 }))
      const { baseUrl } = await startProvider(t, () => ({
        status: 307,
        headers: { location: redirectTarget.baseUrl },
      }))
      await assert.rejects(create('key', { from, baseUrl }).deliver(mail, neverAbortedSignal))
      assert.equal(redirectTarget.calls.length, 0)
    })

    test('a request without a response ends when the signal aborts', async t => {
      const { baseUrl, hanging } = await startProvider(t, () => 'hang')
      const abort = new AbortController()
      const delivery = create('key', { from, baseUrl }).deliver(mail, abort.signal)
      await hanging
      abort.abort()
      await assert.rejects(delivery)
    })

    test('only the beginning of a huge response is kept in memory', async t => {
      const { baseUrl } = await startProvider(t, () => ({ status: 500, body: 'x'.repeat(5_000_000) }))
      await assert.rejects(create('key', { from, baseUrl }).deliver(mail, neverAbortedSignal), error => {
        assert.ok((error as Error).message.length < 3000)
        return true
      })
    })
  })
}
