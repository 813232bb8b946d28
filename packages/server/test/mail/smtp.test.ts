import assert from 'node:assert/strict'
import { Resolver } from 'node:dns'
import { describe, type TestContext, test } from 'node:test'
import { createSmtpMailer, type SmtpSettings } from '../../src/mail/smtp.ts'
import { type Mail, type Mailer, MailRejected } from '../../src/outbox/outbox.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { startRawServer, startSmtpServer } from '../support/smtp.ts'

const from = { name: 'Keyway', address: 'no-reply@sender.test' }
const neverAbortedSignal = new AbortController().signal

const NO_TLS = { kind: 'smtp', host: '127.0.0.1', secure: false, requireTls: false } as const
const NO_CREDENTIALS = { user: null, password: null }

function open(t: TestContext, settings: Partial<SmtpSettings> & { port: number }, ca?: string): Mailer {
  const mailer = createSmtpMailer({ ...NO_TLS, ...NO_CREDENTIALS, ...settings }, { from, ca })
  t.after(() => mailer.close())
  return mailer
}

/** Answers look-ups of `localhost`, for which Nodemailer otherwise asks the name server of the machine. */
function resolveLocalhost(t: TestContext): void {
  const answerWith =
    (addresses: string[]) => (_name: string, answer: (error: null, found: string[]) => void) =>
      answer(null, addresses)
  t.mock.method(Resolver.prototype, 'resolve4', answerWith(['127.0.0.1']))
  t.mock.method(Resolver.prototype, 'resolve6', answerWith([]))
}

function mailTo(address: string, changes: Partial<Mail> = {}): Mail {
  const mail = {
    messageId: '0190a5b8-7c3e-7abc-8def-0123456789ab',
    to: parseEmailAddress(address)!,
    subject: 'Grüße from Keyway',
    text: 'Hello\n',
    html: '<p>Hello – ünïcode</p>',
    template: 'test',
    link: null,
    code: null,
  }
  return { ...mail, ...changes }
}

describe('mail by SMTP', () => {
  test('a mail has one recipient, the same in header and envelope', async t => {
    const server = await startSmtpServer(t)
    const mailer = open(t, { port: server.port })
    await mailer.deliver(mailTo('ada@example.com'), neverAbortedSignal)
    const [mail] = server.mails
    assert.deepEqual(server.recipients, ['ada@example.com'])
    assert.deepEqual(mail!.headers.get('to'), ['ada@example.com'])
    assert.equal(mail!.from, 'no-reply@sender.test')
    assert.deepEqual(mail!.headers.get('from'), ['Keyway <no-reply@sender.test>'])
    assert.deepEqual(mail!.headers.get('message-id'), ['<0190a5b8-7c3e-7abc-8def-0123456789ab@sender.test>'])
    assert.deepEqual(mail!.headers.get('auto-submitted'), ['auto-generated'])
    assert.equal(mail!.headers.get('date')?.length, 1)
    for (const absent of ['cc', 'bcc', 'x-mailer', 'received']) assert.equal(mail!.headers.has(absent), false)
    assert.equal(mail!.text.trim(), 'Hello')
    assert.equal(mail!.html.trim(), '<p>Hello – ünïcode</p>')
  })

  test('an address with special characters is delivered literally', async t => {
    const server = await startSmtpServer(t, { startTls: false })
    const mailer = open(t, { port: server.port })
    for (const address of ["o'brien+tag@example.com", 'a{b}|c@example.com', 'u=x@xn--mller-kva.test']) {
      await mailer.deliver(mailTo(address), neverAbortedSignal)
      assert.ok(server.wire.includes(`RCPT TO:<${address}>\r\n`), server.wire)
      assert.deepEqual(server.mails.at(-1)!.headers.get('to'), [address])
    }
  })

  test('line breaks in a subject add no header', async t => {
    const server = await startSmtpServer(t)
    const mailer = open(t, { port: server.port })
    await mailer.deliver(
      mailTo('ada@example.com', { subject: 'Hi\r\nBcc: eve@evil.test\r\n\r\nbody' }),
      neverAbortedSignal,
    )
    assert.deepEqual(server.recipients, ['ada@example.com'])
    assert.equal(server.mails[0]!.headers.has('bcc'), false)
  })

  test('an address with several recipients is refused before it is sent to the server', async t => {
    const server = await startSmtpServer(t)
    const mailer = open(t, { port: server.port })
    for (const address of ['a@x.test, b@y.test', 'a@x.test\r\nRCPT TO:<b@y.test>', 'a@x.test>\r\nDATA']) {
      const mail = mailTo('ada@example.com', { to: address as Mail['to'] })
      await assert.rejects(mailer.deliver(mail, neverAbortedSignal), MailRejected)
    }
    assert.deepEqual(server.recipients, [])
  })

  test('a 5xx to the recipient is not retryable, a 4xx is', async t => {
    const server = await startSmtpServer(t)
    const mailer = open(t, { port: server.port })
    server.behave(() => 550)
    await assert.rejects(mailer.deliver(mailTo('gone@example.com'), neverAbortedSignal), MailRejected)
    for (const status of [421, 450, 451, 452]) {
      server.behave(() => status)
      await assert.rejects(mailer.deliver(mailTo('later@example.com'), neverAbortedSignal), error => {
        assert.equal(error instanceof MailRejected, false)
        return true
      })
    }
  })

  test('wrong credentials are retryable', async t => {
    const server = await startSmtpServer(t, { auth: { user: 'keyway', password: 'right' } })
    const mailer = open(t, { port: server.port, user: 'keyway', password: 'wrong' })
    await assert.rejects(
      mailer.deliver(mailTo('a@example.com'), neverAbortedSignal),
      error => !(error instanceof MailRejected),
    )
    await assert.rejects(mailer.check())
  })

  test('with TLS required, credentials are sent only inside the encrypted session', async t => {
    resolveLocalhost(t)
    const server = await startSmtpServer(t, { auth: { user: 'keyway', password: 'right' } })
    const settings = { port: server.port, host: 'localhost', requireTls: true }
    const mailer = open(t, { ...settings, user: 'keyway', password: 'right' }, server.certificate)
    await mailer.check()
    await mailer.deliver(mailTo('a@example.com'), neverAbortedSignal)
    assert.equal(server.mails[0]!.encrypted, true)
    assert.equal(server.mails[0]!.user, 'keyway')
  })

  test('no mail is sent to a server without STARTTLS, with an unknown certificate or a wrong name', async t => {
    resolveLocalhost(t)
    const serverWithoutStartTls = await startSmtpServer(t, { startTls: false })
    const untrustedServer = await startSmtpServer(t)
    const misnamedServer = await startSmtpServer(t, { certificateFor: 'other.test' })
    for (const [server, ca] of [
      [serverWithoutStartTls, serverWithoutStartTls.certificate],
      [untrustedServer, undefined],
      [misnamedServer, misnamedServer.certificate],
    ] as const) {
      const settings = { host: 'localhost', requireTls: true, user: 'keyway', password: 'secret' }
      const mailer = open(t, { port: server.port, ...settings }, ca)
      await assert.rejects(
        mailer.deliver(mailTo('a@example.com'), neverAbortedSignal),
        error => !(error instanceof MailRejected),
      )
      assert.deepEqual(server.recipients, [])
    }
  })

  test('credentials are not sent unencrypted when STARTTLS is stripped', async t => {
    let receivedText = ''
    const port = await startRawServer(t, socket => {
      socket.write('220 stripped\r\n')
      socket.on('data', chunk => {
        receivedText += chunk
        socket.write(String(chunk).startsWith('EHLO') ? '250-hi\r\n250 AUTH PLAIN LOGIN\r\n' : '502 no\r\n')
      })
    })
    const mailer = open(t, { port, requireTls: true, user: 'keyway', password: 'secret' })
    await assert.rejects(mailer.deliver(mailTo('a@example.com'), neverAbortedSignal))
    assert.doesNotMatch(receivedText, /AUTH/)
    assert.doesNotMatch(receivedText, new RegExp(Buffer.from('\0keyway\0secret').toString('base64')))
  })

  test('an endless response of the server fails the attempt', async t => {
    const line = `220-${'x'.repeat(1000)}\r\n`.repeat(64)
    const port = await startRawServer(t, socket => {
      const writeEndlessly = () => {
        while (!socket.destroyed && socket.write(line));
        socket.once('drain', writeEndlessly)
      }
      writeEndlessly()
    })
    await assert.rejects(
      open(t, { port }).deliver(mailTo('a@example.com'), neverAbortedSignal),
      error => !(error instanceof MailRejected),
    )
  })

  test('garbage followed by a reset fails the attempt', async t => {
    const garbagePort = await startRawServer(t, socket => socket.end('\x00\xff\r\nHTTP/1.1 200 OK\r\n\r\n'))
    const resettingPort = await startRawServer(t, socket => socket.resetAndDestroy())
    for (const port of [garbagePort, resettingPort]) {
      await assert.rejects(open(t, { port }).deliver(mailTo('a@example.com'), neverAbortedSignal))
    }
  })

  test('a delivery to a hanging server ends when the signal aborts', async t => {
    const server = await startSmtpServer(t)
    server.behave(recipient => (recipient === 'slow@example.com' ? 'hang' : 'accept'))
    const mailer = open(t, { port: server.port })
    const abort = new AbortController()
    const slowDelivery = mailer.deliver(mailTo('slow@example.com'), abort.signal)
    await server.rcptCommands(1)
    await mailer.deliver(mailTo('quick@example.com'), neverAbortedSignal)
    abort.abort(new Error('long enough'))
    await assert.rejects(slowDelivery)
    assert.deepEqual(
      server.mails.map(mail => mail.recipients),
      [['quick@example.com']],
    )
  })

  test('at most eight connections are open at a time', async t => {
    const server = await startSmtpServer(t)
    const mailer = open(t, { port: server.port })
    await Promise.all(
      Array.from({ length: 60 }, (_, n) => mailer.deliver(mailTo(`u${n}@example.com`), neverAbortedSignal)),
    )
    assert.equal(server.mails.length, 60)
    assert.ok(server.mostConnections <= 8, `${server.mostConnections}`)
  })
})
