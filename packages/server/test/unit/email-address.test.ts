import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import addressparser from 'nodemailer/lib/addressparser/index.js'
import { createSmtpMailer } from '../../src/mail/smtp.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { anyText } from '../support/any-text.ts'
import { startSmtpServer } from '../support/smtp.ts'

interface ParsedAddress {
  address?: string
  group?: unknown
}

const LOCAL_CHARACTERS = "azAZ09!#$%&'*+/=?^_`{|}~-.".split('')

const MAIL = {
  messageId: '0190a5b8-7c3e-7abc-8def-0123456789ab',
  subject: 'Sign in',
  text: 'Hello\n',
  html: '<p>Hello</p>',
  template: 'test',
  link: null,
  code: null,
}

/** The recipients that a mailer reads from this text in a header. */
function recipientsOf(text: string): (string | undefined)[] {
  const entries = addressparser(text) as ParsedAddress[]
  return entries.map(entry => (entry.group ? 'a group' : entry.address))
}

const refusedTextsByReason: Record<string, string[]> = {
  'two addresses': ['a@x.test,b@y.test', 'a@x.test;b@y.test', 'a@x.test b@y.test', 'a@x.test\tb@y.test'],
  'quotes, brackets, groups': [
    '"a@evil.test x"@victim.test',
    '"a@evil.test"@victim.test',
    'a@evil.test<b@victim.test>',
    '<b@victim.test>',
    'Bob <b@victim.test>',
    'g:a@x.test,b@y.test;',
    'a@x.test>,<b@y.test',
  ],
  'other signs for @': ['a\uff20evil.test@victim.test', 'a@evil.test\ufe6bvictim.test', 'a%40evil.test'],
  'letters that only fold into ASCII': [
    'mi\u212ae@victim.test',
    'm\u0131ke@victim.test',
    '\u017fam@victim.test',
    '\ufb01@victim.test',
    '\u0130@victim.test',
    'u@gma\u0131l.test',
  ],
  'a domain in Unicode': ['u@m\u00fcller.test', 'u@x\u3002test'],
  'odd domains': [
    'u@x.test.',
    'u@x..test',
    'u@.x.test',
    'u@localhost',
    'u@[127.0.0.1]',
    'u@127.0.0.1',
    'u@0x7f.1',
    'u@[IPv6:::1]',
    'u@x',
    'u@-x.test',
    'u@x-.test',
    'u@x_y.test',
    'u@x.test:25',
  ],
  'comments and inner white space': [
    'u(c)@x.test',
    'u@x.test(c)',
    'u@(c)x.test',
    'u @x.test',
    'u@ x.test',
    '"u\t"@x.test',
  ],
  'control characters and new lines': [
    'u@x.test\r\nBcc: e@evil.test',
    'u@x.test\nRCPT TO:<e@evil.test>',
    'u@x.test%0d%0aBcc: e@evil.test',
    'u@x.test\u0085',
    'u@x.test\u2028',
    'u@x.test\0',
    'u\0@x.test',
    'u@x.test\x7f',
    'u@x.test\r\n\r\nbody',
  ],
  'old routes': [
    'evil.test!v@x.test@y.test',
    'evil.test!v@x.test',
    'v%evil.test@x.test',
    'v%40evil.test@x.test',
    '@a.test,@b.test:v@x.test',
  ],
  'encoded words, which mailers decode': [
    '=?utf-8?q?a=40evil.test?=@victim.test',
    '=?utf-8?b?yubldmlslnrlc3q=?=@victim.test',
    'a.=?us-ascii?q?=40evil.test=2c?=@victim.test',
    '=?x@victim.test',
  ],
  'dots at the wrong place': ['.u@x.test', 'u.@x.test', 'u..u@x.test'],
  nothing: ['', ' ', '@', 'u@', '@x.test'],
}

describe('an address is exactly one plain ASCII local@domain', () => {
  for (const [reason, texts] of Object.entries(refusedTextsByReason)) {
    test(`refused: ${reason}`, () => {
      for (const text of texts) assert.equal(parseEmailAddress(text), null, JSON.stringify(text))
    })
  }

  test('white space around it is removed and ASCII letters are lower-cased, nothing else', () => {
    assert.equal(parseEmailAddress(' \tFoo@X.Test\r\n'), 'foo@x.test')
    assert.equal(parseEmailAddress('foo@x.test'), 'foo@x.test')
    assert.equal(parseEmailAddress('F.O.O+Tag@x.test'), 'f.o.o+tag@x.test')
  })

  test('every character that a plain local part may have is kept', () => {
    const address = "#$&'*+/?=^_`{|}~-@x.test"
    assert.equal(parseEmailAddress(address), address)
  })

  test('an internationalised domain must be in its xn-- form', () => {
    assert.equal(parseEmailAddress('u@xn--mller-kva.test'), 'u@xn--mller-kva.test')
    assert.equal(parseEmailAddress('u@x.xn--p1ai'), 'u@x.xn--p1ai')
  })

  test('64 characters before the @ and 254 in total are the maximum', () => {
    const local = 'l'.repeat(64)
    const domain = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(56)}.test`
    assert.equal(`${local}@${domain}`.length, 254)
    assert.equal(parseEmailAddress(`${local}@${domain}`), `${local}@${domain}`)
    assert.equal(parseEmailAddress(`${local}l@x.test`), null)
    assert.equal(parseEmailAddress(`${local}@c${domain}`), null)
    assert.equal(parseEmailAddress(`u@${'a'.repeat(64)}.test`), null)
  })

  test('overlong texts are refused in linear time', () => {
    for (const text of [
      '@'.repeat(50_000),
      '('.repeat(50_000),
      'a'.repeat(1_000_000),
      `${'a.'.repeat(30_000)}@x`,
    ]) {
      const cpuBefore = process.threadCpuUsage()
      assert.equal(parseEmailAddress(text), null)
      const { user, system } = process.threadCpuUsage(cpuBefore)
      assert.ok(user + system < 100_000, `${(user + system) / 1000} ms of processor time`)
    }
  })
})

describe('arbitrary text', () => {
  const nearAddress = fc
    .array(
      fc.constantFrom(
        ...'aZ9.@+-_<>()[]",;: \t\r\n%!\\\0\u0130\u212a\uff20\u2028'.split(''),
        'x.test',
        '@y.test',
        '=?utf-8?q?',
        'a=40evil.test',
        '?=',
        '%40',
      ),
      { maxLength: 12 },
    )
    .map(parts => parts.join(''))
  const text = fc.oneof(nearAddress, fc.emailAddress(), fc.string(), anyText({ maxLength: 40 }))

  test('the canonical form is its own canonical form', () => {
    fc.assert(
      fc.property(text, input => {
        const address = parseEmailAddress(input)
        if (address !== null) assert.equal(parseEmailAddress(address), address)
      }),
    )
  })

  test('an accepted address is parsed by a mailer as exactly that recipient', () => {
    fc.assert(
      fc.property(text, input => {
        const address = parseEmailAddress(input)
        if (address !== null) assert.deepEqual(recipientsOf(address), [address])
      }),
      { numRuns: 1000 },
    )
  })

  test('an accepted address is the only RCPT and To of a sent mail, unchanged', async t => {
    const server = await startSmtpServer(t, { startTls: false })
    const settings = { kind: 'smtp', host: '127.0.0.1', secure: false, requireTls: false } as const
    const mailer = createSmtpMailer(
      { ...settings, port: server.port, user: null, password: null },
      { from: { name: 'Keyway', address: 'no-reply@sender.test' } },
    )
    t.after(() => mailer.close())
    const local = fc.string({ unit: fc.constantFrom(...LOCAL_CHARACTERS), minLength: 1, maxLength: 20 })
    const candidate = fc.oneof(
      local.map(name => `${name}@x.test`),
      fc.emailAddress(),
      text,
    )
    const acceptedAddress = candidate.map(parseEmailAddress).filter(address => address !== null)
    await fc.assert(
      fc.asyncProperty(acceptedAddress, async to => {
        const mailCountBefore = server.mails.length
        await mailer.deliver({ ...MAIL, to }, AbortSignal.timeout(10_000))
        const mails = server.mails.slice(mailCountBefore)
        assert.deepEqual(
          mails.map(mail => [mail.recipients, mail.headers.get('to')]),
          [[[to], [to]]],
        )
        assert.ok(server.wire.includes(`RCPT TO:<${to}>\r\n`))
      }),
      { numRuns: 150 },
    )
  })

  test('spellings that differ in ASCII case or outer white space are one address', () => {
    fc.assert(
      fc.property(fc.emailAddress(), fc.constantFrom('', ' ', '\t', '\r\n'), (input, space) => {
        assert.equal(parseEmailAddress(`${space}${input.toUpperCase()}${space}`), parseEmailAddress(input))
      }),
    )
  })
})
