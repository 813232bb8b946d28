import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '../../src/config.ts'
import { createLocalizations } from '../../src/languages/localization.ts'
import { createMailWriter } from '../../src/mail/templates/mail-writer.ts'
import type { MessageContent } from '../../src/outbox/message.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'

/** Writes an example of every mail as .html and .txt into the folder given as argument. */

const at = Date.UTC(2026, 10, 20, 19, 22, 7)
const keyPrefix = 'svc_9fK2xQ7m'

/** One example per kind of mail. */
export const EXAMPLES: MessageContent[] = [
  {
    kind: 'sign_in',
    link: 'https://keyway.example.com/verify?token=3q2-7wXyZ_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456&email=ada%40example.com',
    code: '48210937',
    expiresAt: at + 300_000,
  },
  { kind: 'invitation', link: 'https://keyway.example.com/sign-in?email=ada%40example.com', expiresAt: at },
  { kind: 'welcome', trialCredit: '2.00' },
  { kind: 'refresh_token_reused', at, network: '203.0.113.0/24', client: 'Mozilla/5.0 (X11; Linux x86_64)' },
  { kind: 'api_key_revoked_by_holder', at, keyPrefix, keyName: 'Build server' },
  { kind: 'api_key_expiring', expiresAt: at, keyPrefix, keyName: 'Build server', days: 7 },
  { kind: 'api_key_used_again', at, keyPrefix, keyName: null, network: '203.0.113.7' },
  {
    kind: 'api_key_limit',
    at,
    limit: 'spend',
    per: 'month',
    percent: 80,
    keyPrefix,
    keyName: 'Build server',
  },
  {
    kind: 'api_key_created_by_device',
    at,
    keyPrefix,
    keyName: 'laptop',
    deviceName: 'laptop',
    network: '203.0.113.7',
  },
  { kind: 'api_key_new_network', at, keyPrefix, keyName: 'Build server', network: '203.0.113.7' },
  {
    kind: 'webhook_disabled',
    at,
    webhookId: '0190a5b8-7c3e-7abc-8def-0123456789ab',
    host: 'hooks.example.com',
    failure: 'status 500',
  },
  { kind: 'test' },
]

async function writePreviews(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const write = createMailWriter({
    localizations: createLocalizations(),
    productName: 'Keyway',
    supportEmail: 'support@example.com',
    publicUrl: 'https://keyway.example.com',
    brand: loadConfig({}).brand,
  })
  const recipient = parseEmailAddress('ada@example.com')!
  for (const content of EXAMPLES) {
    for (const hasAccount of content.kind === 'sign_in' ? [false, true] : [true]) {
      const id = '0190a5b8-7c3e-7abc-8def-0123456789ab'
      const mail = await write({ id, recipient, content, locale: null }, hasAccount)
      writeFileSync(join(folder, `${mail.template}.html`), mail.html)
      writeFileSync(join(folder, `${mail.template}.txt`), `Subject: ${mail.subject}\n\n${mail.text}`)
    }
  }
}

if (import.meta.main) await writePreviews(process.argv[2] ?? 'mail-previews')
