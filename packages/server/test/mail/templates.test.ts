import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { LANGUAGES, type Language } from '../../src/languages/languages.ts'
import { createLocalizations, type Texts } from '../../src/languages/localization.ts'
import { createMailWriter } from '../../src/mail/templates/mail-writer.ts'
import type { MessageContent } from '../../src/outbox/message.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { EXAMPLES } from '../support/mail-previews.ts'

const publicUrl = 'https://keyway.test'
const supportEmail = 'help@keyway.test'
const { brand } = loadConfig({})
const localizations = createLocalizations()
const mailWriter = createMailWriter({
  localizations,
  productName: 'Acme & Co',
  supportEmail,
  publicUrl,
  brand,
})
const recipient = parseEmailAddress('ada@example.com')!
const writeMail = async (content: MessageContent, hasAccount = true, locale: string | null = null) =>
  mailWriter({ id: '0190a5b8-7c3e-7abc-8def-0123456789ab', recipient, content, locale }, hasAccount)

const link = `${publicUrl}/verify?app_id=shop&token=${'a'.repeat(43)}&email=ada%40example.com`
const signInContent = {
  kind: 'sign_in',
  link,
  code: '04810937',
  expiresAt: Date.UTC(2026, 10, 20, 12, 5),
} as const
const allMails = await Promise.all(
  EXAMPLES.flatMap(content => [writeMail(content, true), writeMail(content, false)]),
)

/** The visible text, without tags and with decoded entities. */
function visibleText(html: string): string {
  const body = html.replace(/<(style|title)>[\s\S]*?<\/\1>/g, '').replace(/<[^>]*>/g, '')
  return decode(body).replace(/\s+/g, ' ')
}

function decode(html: string): string {
  return html
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

const hrefs = (html: string) => [...html.matchAll(/href="([^"]*)"/g)].map(match => decode(match[1]!))

for (const [name, hasAccount] of [
  ['signup', false],
  ['login', true],
] as const) {
  const mail = await writeMail(signInContent, hasAccount)
  describe(`the ${name} mail`, () => {
    test('uses the template for a new or existing account', () => assert.equal(mail.template, name))

    test('has links only to the verify URL and to the support address', () => {
      assert.deepEqual(hrefs(mail.html), [link, `mailto:${supportEmail}`])
      assert.deepEqual(
        mail.text.match(/https?:\/\/\S+/g),
        [link],
        'the text part has the whole URL, unbroken, once',
      )
    })

    for (const [part, words] of [
      ['HTML', visibleText(mail.html)],
      ['text', mail.text.replace(/\s+/g, ' ')],
    ] as const) {
      test(`says in the ${part} part all that it must`, () => {
        assert.ok(words.includes(link), 'the URL as text')
        assert.match(words, /\b04810937\b/, 'the code, whole when copied')
        assert.match(words, /link and the code expire in 5 minutes/)
        assert.match(words, /did not request this, you can ignore/)
        assert.ok(words.includes(supportEmail))
        assert.ok(words.includes('Acme & Co'))
      })
    }

    test('shows no secret in its subject', () => {
      assert.match(mail.subject, /Acme & Co/)
      assert.doesNotMatch(mail.subject, /04810937|aaaa/)
    })

    test('provides link and code for the local inbox', () => {
      assert.equal(mail.link, link)
      assert.equal(mail.code, '04810937')
    })
  })
}

describe('every mail', () => {
  test('has a unique subject, so that mail programs do not group two mails', async () => {
    const subjects = new Map(allMails.map(mail => [mail.template, mail.subject]))
    assert.equal(new Set(subjects.values()).size, subjects.size)
    for (const milliseconds of [1, 1000]) {
      const laterMail = await writeMail({
        ...signInContent,
        expiresAt: signInContent.expiresAt + milliseconds,
      })
      assert.notEqual(
        laterMail.subject,
        (await writeMail(signInContent)).subject,
        `asked for again after ${milliseconds} ms`,
      )
    }
  })

  test('loads nothing from the network and has no scripts', () => {
    for (const { html } of allMails) {
      assert.doesNotMatch(html, /<(img|link|script|iframe|video|object|form|base)\b/i)
      assert.doesNotMatch(html, /url\(|@import|\bsrc=|background=|\son\w+="/i)
    }
  })

  test('has HTML for light and dark, for screen readers and for narrow screens', () => {
    for (const { html } of allMails) {
      assert.match(html, /<html lang="en"/)
      assert.match(html, /<meta name="color-scheme" content="light dark">/)
      assert.match(html, /prefers-color-scheme: dark/)
      assert.match(html, /max-width:600px/)
      assert.equal(html.match(/<h1\b/g)?.length, 1)
      const layoutTables = html
        .match(/<table\b[^>]*>/g)!
        .filter(table => !table.includes('class="panel" width'))
      for (const table of layoutTables) assert.match(table, /role="presentation"/)
    }
  })

  test('is small enough not to be truncated by mail programs', () => {
    for (const { html } of allMails) assert.ok(html.length < 20_000, `${html.length}`)
  })

  test('has a plain-text part with short lines and the support address', () => {
    for (const { text } of allMails) {
      assert.ok(text.includes(supportEmail))
      for (const line of text.split('\n')) assert.ok(line.length <= 78 || line.startsWith('https://'), line)
    }
  })

  test('is the same on every attempt', async () => {
    for (const content of EXAMPLES) assert.deepEqual(await writeMail(content), await writeMail(content))
  })
})

for (const language of Object.keys(LANGUAGES) as Language[]) {
  const { name, tag, direction } = LANGUAGES[language]
  test(`every mail says in ${name} all that it must`, async () => {
    const { texts } = await localizations.in(language)
    for (const content of EXAMPLES) {
      for (const hasAccount of content.kind === 'sign_in' ? [true, false] : [true]) {
        const { html, text, subject, template } = await writeMail(content, hasAccount, tag)
        assert.ok(html.startsWith(`<!doctype html>\n<html lang="${tag}" dir="${direction}">`), template)
        assert.match(subject, /^[^\p{Cc}{}]+$/u, template)
        assert.ok([...subject].length <= 150, subject)
        for (const [part, words] of [
          ['HTML', visibleText(html)],
          ['text', text.replace(/\s+/g, ' ')],
        ] as const) {
          const requiredParts = [supportEmail, ...requiredPartsOf(content, texts.mails, hasAccount)]
          for (const each of requiredParts)
            assert.ok(words.includes(each.replace(/\s+/g, ' ')), `${template}, ${part}: ${each}`)
          assert.doesNotMatch(words, /\{\w*\}|undefined|\[object/, template)
        }
      }
    }
  })
}

/** What a sign-in mail must have: its button, the 5-minute note, the ignore note, the code and the link. */
function requiredPartsOf(content: MessageContent, mails: Texts['mails'], hasAccount: boolean): string[] {
  if (content.kind !== 'sign_in') return []
  const { button, ignore } = mails[hasAccount ? 'login' : 'signup']
  return [button, mails.expires({ minutes: 5 }), ignore, content.code, content.link]
}

describe('user-supplied text', () => {
  const hostileText = '<a href="http://evil.test">x</a><img src=x> {{7*7}} \r\nBcc: e@evil.test'

  test('is escaped in a mail', async () => {
    const at = signInContent.expiresAt
    const mails = await Promise.all([
      writeMail({ kind: 'refresh_token_reused', at, network: hostileText, client: hostileText }),
      writeMail({ kind: 'api_key_revoked_by_holder', at, keyPrefix: 'svc_x', keyName: hostileText }),
      writeMail({
        kind: 'api_key_created_by_device',
        at,
        keyPrefix: 'svc_x',
        keyName: hostileText,
        deviceName: hostileText,
        network: 'n',
      }),
      writeMail({ kind: 'api_key_new_network', at, keyPrefix: 'svc_x', keyName: hostileText, network: 'n' }),
      writeMail({ kind: 'api_key_used_again', at, keyPrefix: 'svc_x', keyName: hostileText, network: 'n' }),
    ])
    for (const { html, subject } of mails) {
      assert.doesNotMatch(html, /<img/)
      assert.doesNotMatch(html, /\b49\b/)
      assert.ok(hrefs(html).every(href => href.startsWith(publicUrl) || href === `mailto:${supportEmail}`))
      assert.doesNotMatch(subject, /evil/)
    }
  })

  test('in a client’s name is not linked by mail programs', async () => {
    const content = {
      kind: 'refresh_token_reused',
      at: 0,
      network: '192.0.2.0/24',
      client: 'see https://evil.test/x or www.evil.test',
    } as const
    const { html, text } = await writeMail(content)
    for (const part of [html, text]) assert.doesNotMatch(part, /evil\.test|www\./)
  })

  test('in a link’s parameters is encoded', async () => {
    const { html } = await writeMail({ ...signInContent, link: `${link}&x="><script>alert(1)</script>` })
    assert.doesNotMatch(html, /<script/)
  })
})

describe('a mail about a key', () => {
  const keyFields = { at: 0, keyPrefix: 'svc_x', keyName: null, network: '192.0.2.0/24' } as const
  const keyId = '0190a5b8-7c3e-7abc-8def-0123456789ab'

  test('leads to the page of that key', async () => {
    const { html, text } = await writeMail({ kind: 'api_key_new_network', keyId, ...keyFields })
    assert.ok(hrefs(html).includes(`${publicUrl}/keys/${keyId}`))
    assert.match(text, new RegExp(`/keys/${keyId}$`, 'm'))
  })

  test('leads to all keys if an earlier version queued it without the id of the key', async () => {
    const { html } = await writeMail({ kind: 'api_key_new_network', ...keyFields })
    assert.ok(hrefs(html).includes(`${publicUrl}/keys`))
  })
})

test('the mail about a token that was used twice names the browser as the pages do', async () => {
  const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
  const content = { kind: 'refresh_token_reused', at: 0, network: '192.0.2.0/24', client: firefox } as const
  const { html, text } = await writeMail(content)
  for (const part of [visibleText(html), text]) {
    assert.match(part, /Firefox on Linux/)
    assert.doesNotMatch(part, /Mozilla/)
  }
})

test('a sign-in mail says when it was asked for, and names a browser but no other program', async () => {
  const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
  for (const hasAccount of [true, false]) {
    const { html, text } = await writeMail({ ...signInContent, client: firefox }, hasAccount)
    for (const part of [visibleText(html), text]) {
      assert.match(part, /Requested:?\s*20 Nov 2026, 12:00 UTC/)
      assert.match(part, /Program:?\s*Firefox on Linux/)
      assert.doesNotMatch(part, /Mozilla/)
    }
    for (const client of ['call 555-0100 to win', null, undefined]) {
      const otherClient = await writeMail(
        { ...signInContent, ...(client !== undefined && { client }) },
        hasAccount,
      )
      assert.doesNotMatch(`${otherClient.html} ${otherClient.text}`, /555|Program/)
    }
  }
})

test('the mail about a limit says how much it allows and how much was used', async () => {
  const limitFields = {
    kind: 'api_key_limit',
    at: 0,
    per: 'month',
    percent: 80,
    keyPrefix: 'svc_x',
    keyName: null,
  } as const
  const textOf = async (content: MessageContent) => visibleText((await writeMail(content)).html)
  const spendMail = await textOf({ ...limitFields, limit: 'spend', allowed: 10_000_000, used: 8_120_000 })
  assert.match(spendMail, /Limit\s*\$10\.00\s*Used so far\s*\$8\.12/)
  const quotaMail = await textOf({ ...limitFields, limit: 'quota', allowed: 10_000, used: 8_000 })
  assert.match(quotaMail, /Limit\s*10,000\s*Used so far\s*8,000/)
  const limitReachedMail = await textOf({ ...limitFields, limit: 'quota', percent: 100, allowed: 10_000 })
  assert.match(limitReachedMail, /Limit\s*10,000/)
  assert.doesNotMatch(limitReachedMail, /Used so far/)
  assert.doesNotMatch(
    await textOf({ ...limitFields, limit: 'spend' }),
    /Used so far/,
    'queued by an earlier version',
  )
})

test('the mail about a disabled webhook leads to that webhook', async () => {
  const webhookId = '0190a5b8-7c3e-7abc-8def-0123456789ab'
  const webhookFields = {
    kind: 'webhook_disabled',
    at: 0,
    webhookId,
    host: 'hooks.example.com',
    failure: 'status 500',
  } as const
  assert.ok(hrefs((await writeMail(webhookFields)).html).includes(`${publicUrl}/admin/webhooks/${webhookId}`))
})

test('the mail about a changed address has a button that writes to support, and text without it', async () => {
  const content = { kind: 'email_changed', at: 0, newEmail: 'ada@example.org', network: 'n' } as const
  const { html, text } = await writeMail(content)
  assert.ok(hrefs(html).some(href => href.startsWith(`mailto:${supportEmail}?subject=`)))
  assert.doesNotMatch(text, /mailto:|\n\n\n/)
})

test('the mail about a deletion names its date in its first sentence', async () => {
  const content = {
    kind: 'account_deletion_requested',
    at: 0,
    deletesAt: signInContent.expiresAt,
    network: 'n',
  } as const
  assert.match(
    (await writeMail(content)).text,
    /Until 20 Nov 2026, 12:05 UTC your\s+account\s+works\s+as\s+before/,
  )
})

describe('the welcome mail', () => {
  test('mentions the credit only if there is one', async () => {
    assert.match((await writeMail({ kind: 'welcome', trialCredit: '2.00' })).text, /\$2\.00 of trial credit/)
    assert.doesNotMatch((await writeMail({ kind: 'welcome', trialCredit: '0.00' })).text, /credit/)
  })
})

test('a mail in Arabic goes from right to left, with addresses and codes from left to right', async () => {
  const mail = await writeMail(signInContent, true, 'ar')
  assert.match(mail.html, /<html lang="ar" dir="rtl">/)
  assert.match(mail.html, /<p [^>]*dir="ltr"[^>]*>https:\/\/keyway\.test\/verify/)
  assert.match(mail.html, /<p [^>]*dir="ltr"[^>]*><span>0481</)
  assert.deepEqual(mail.text.match(/https?:\/\/\S+/g), [link])
  const { html } = await writeMail(
    { kind: 'api_key_expiring', expiresAt: 0, keyPrefix: 'svc_1', keyName: null, days: 3 },
    true,
    'ar',
  )
  assert.match(html, /<th [^>]*align="right"/)
  assert.match(html, /<bdi>svc_1…<\/bdi>/)
})
