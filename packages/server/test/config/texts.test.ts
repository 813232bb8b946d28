import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ConfigError, loadConfig } from '../../src/config.ts'
import { createLocalizations } from '../../src/languages/localization.ts'
import { createMailWriter } from '../../src/mail/templates/mail-writer.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { createClient } from '../support/page-client.ts'
import { startWeb } from '../support/web.ts'

function folderWith(t: TestContext, files: Record<string, unknown>): string {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-texts-'))
  t.after(() => rmSync(folder, { recursive: true }))
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content))
  return folder
}

/** The mistakes for a folder, each without its beginning and its example. */
function mistakesOf(folder: string): string[] {
  try {
    loadConfig({ KEYWAY_TEXTS: folder })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    assert.equal(error.exitStatus, 78)
    return error.mistakes.map(mistake => {
      const [, what] =
        /^KEYWAY_TEXTS "[^"]+": (.+)\. Example: KEYWAY_TEXTS=\/etc\/keyway\/texts$/.exec(mistake) ?? []
      return what ?? mistake
    })
  }
  return []
}

const REFUSED_TEXTS: [title: string, texts: unknown, mistake: string][] = [
  ['loses a placeholder', { signIn: { heading: 'Anmelden' } }, 'in de.json, signIn.heading lacks {product}'],
  [
    'has an unknown placeholder',
    { signIn: { title: 'Hallo {name}' } },
    'in de.json, signIn.title has {name}, into which nothing is put',
  ],
  [
    'loses the button of a mail',
    { mails: { login: { button: ' \u200b\u00a0' } } },
    'in de.json, mails.login.button is empty: the button of the mail would be lost',
  ],
  [
    'loses the button of a mail about keys',
    { mails: { keysButton: '' } },
    'in de.json, mails.keysButton is empty: the button of the mail would be lost',
  ],
  [
    'loses the 5-minute note of a mail',
    { mails: { expires: 'Beeilen Sie sich.' } },
    'in de.json, mails.expires lacks {minutes}: the note that the link and the code expire after 5 minutes would be lost',
  ],
  [
    'loses the ignore note of a mail',
    { mails: { signup: { ignore: '' } } },
    'in de.json, mails.signup.ignore is empty: the note that the mail can be ignored would be lost',
  ],
  [
    'loses the support contact of mails',
    { mails: { support: 'Fragen?' } },
    'in de.json, mails.support lacks {support}: the support contact of every mail would be lost',
  ],
  ['has an unknown name', { nav: { kyes: 'x' } }, 'in de.json, nav.kyes is no text here: did you mean keys?'],
  ['is in an unknown group', { somewhere: { else: 'x' } }, 'in de.json, somewhere is no text here'],
  [
    'is named like a property of every object',
    '{"__proto__": {"x": "y"}}',
    'in de.json, __proto__ is no text here',
  ],
  ['is a number', { nav: { keys: 5 } }, 'in de.json, nav.keys must be a text'],
  ['is a text instead of a group', { nav: 'x' }, 'in de.json, nav must be an object'],
  ['is a list instead of all texts', '[]', 'in de.json, the file must be an object'],
  ['is part of a shorter list', { keys: { how: [] } }, 'in de.json, keys.how must be a list of 3'],
  [
    'has a line break',
    { mails: { login: { subject: 'Hallo {product} {time}\r\nBcc: eve@evil.test' } } },
    'in de.json, mails.login.subject contains a line break or another control character',
  ],
  ['is too long', { nav: { keys: 'x'.repeat(2001) } }, 'in de.json, nav.keys has more than 2000 characters'],
  [
    'has a plural form of another language',
    { units: { seconds: { few: '{count}' } } },
    'in de.json, units.seconds.few is no plural form of this language, which has one, other',
  ],
  [
    'does not count in its general form',
    { units: { seconds: { one: 'Eine Sekunde', other: 'Sekunden' } } },
    'in de.json, units.seconds.other lacks {count}',
  ],
]

for (const [title, texts, mistake] of REFUSED_TEXTS) {
  test(`a text of the operator that ${title} is a mistake at start`, t => {
    assert.deepEqual(mistakesOf(folderWith(t, { 'de.json': texts })), [mistake])
  })
}

test('a file of texts that is too large, not JSON or for an unknown language is a mistake, as is a missing folder', t => {
  assert.match(mistakesOf(folderWith(t, { 'de.json': '{"nav": }' }))[0]!, /^de\.json is no JSON \(/)
  const largeFile = `{"nav": {"keys": "${'x'.repeat(256 * 1024)}"}}`
  assert.deepEqual(mistakesOf(folderWith(t, { 'de.json': largeFile })), ['de.json is larger than 256 KiB'])
  assert.match(
    mistakesOf(folderWith(t, { 'xx.json': {} }))[0]!,
    /^xx\.json is named after no language that there is: en, de/,
  )
  assert.deepEqual(mistakesOf('/nonexistent'), ['the folder cannot be read (ENOENT)'])
  assert.deepEqual(mistakesOf(folderWith(t, { 'README.md': 'ours' })), [], 'other files are ignored')
})

test('all mistakes in texts are listed together, up to twenty of a file', t => {
  const unknownTexts = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`unknown${index}`, 'x']))
  const mistakes = mistakesOf(folderWith(t, { 'de.json': unknownTexts, 'en.json': { nav: 1 } }))
  assert.equal(mistakes.length, 22)
  assert.equal(mistakes[20], 'in de.json, and 10 more')
  assert.equal(mistakes[21], 'in en.json, nav must be an object')
})

test('the operator replaces single texts of pages and mails, and the others stay', async t => {
  const folder = folderWith(t, {
    'en.json': { signIn: { heading: 'Enter {product} <now>' } },
    'de.json': {
      units: { minutes: { one: 'Ein Minütchen' } },
      mails: { login: { button: 'Hinein' } },
    },
  })
  const web = await startWeb(t, { KEYWAY_TEXTS: folder })
  const page = await (await createClient(web.url).get('/sign-in')).text()
  assert.match(page, /<h1>Enter Keyway &lt;now&gt;<\/h1>/)
  assert.match(page, /Send me a link/)

  const { texts, brand } = loadConfig({ KEYWAY_TEXTS: folder })
  const localizations = createLocalizations(texts)
  const { units } = (await localizations.in('de')).texts
  assert.deepEqual(
    [1, 2].map(count => units.minutes({ count })),
    ['Ein Minütchen', '2 Minuten'],
  )
  const product = { productName: 'Keyway', supportEmail: 'help@keyway.test', publicUrl: web.url, brand }
  const writeMail = createMailWriter({ localizations, ...product })
  const content = { kind: 'sign_in', link: `${web.url}/verify`, code: '12345678', expiresAt: 0 } as const
  const recipient = parseEmailAddress('ada@example.com')!
  const { html, text } = await writeMail({ id: 'x', recipient, content, locale: 'de' }, true)
  for (const part of [html, text]) assert.match(part, /Hinein/)
  assert.match(text, /help@keyway\.test/)
})
