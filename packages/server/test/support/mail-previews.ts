import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DAY, HOUR } from '../../src/clock.ts'
import { loadConfig } from '../../src/config.ts'
import { createLocalizations } from '../../src/languages/localization.ts'
import { createMailWriter } from '../../src/mail/templates/mail-writer.ts'
import type { MessageContent } from '../../src/outbox/message.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'

/*
 * Run as a program, this writes an example of every mail as .html and .txt into the folder given as argument, by
 * default mail-previews.
 */

const at = Date.UTC(2026, 10, 20, 19, 22, 7)
const keyId = '0190a5b8-7c3e-7abc-8def-0123456789ab'
const keyPrefix = 'svc_9fK2xQ7m'
const network = '203.0.113.7'
const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const changeLink =
  'https://keyway.example.com/account/email?token=3q2-7wXyZ_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456'

/** The examples are typed by kind, so that a kind of mail without an example does not compile. */
const EXAMPLE: { [Kind in MessageContent['kind']]: Extract<MessageContent, { kind: Kind }> } = {
  sign_in: {
    kind: 'sign_in',
    link: 'https://keyway.example.com/verify?token=3q2-7wXyZ_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456&email=ada%40example.com',
    code: '48210937',
    expiresAt: at + 300_000,
    client: firefox,
  },
  invitation: {
    kind: 'invitation',
    link: 'https://keyway.example.com/sign-in?email=ada%40example.com',
    expiresAt: at,
  },
  welcome: { kind: 'welcome', trialCredit: '2.00' },
  refresh_token_reused: {
    kind: 'refresh_token_reused',
    at,
    network: '203.0.113.0/24',
    client: firefox,
  },
  api_key_revoked_by_holder: {
    kind: 'api_key_revoked_by_holder',
    at,
    keyId,
    keyPrefix,
    keyName: 'Build server',
  },
  api_key_expiring: {
    kind: 'api_key_expiring',
    expiresAt: at,
    keyId,
    keyPrefix,
    keyName: 'Build server',
    days: 7,
  },
  api_key_used_again: { kind: 'api_key_used_again', at, keyId, keyPrefix, keyName: 'Night backup', network },
  api_key_limit: {
    kind: 'api_key_limit',
    at,
    limit: 'spend',
    per: 'month',
    percent: 80,
    allowed: 10_000_000,
    used: 8_120_000,
    keyId,
    keyPrefix,
    keyName: 'Build server',
  },
  api_key_created_by_device: {
    kind: 'api_key_created_by_device',
    at,
    keyId,
    keyPrefix,
    keyName: 'laptop',
    deviceName: 'laptop',
    network,
  },
  api_key_new_network: {
    kind: 'api_key_new_network',
    at,
    keyId,
    keyPrefix,
    keyName: 'Build server',
    network,
  },
  account_deletion_requested: { kind: 'account_deletion_requested', at, deletesAt: at + 7 * DAY, network },
  email_change_old: {
    kind: 'email_change_old',
    link: changeLink,
    newEmail: 'ada@example.org',
    expiresAt: at + HOUR,
    network,
  },
  email_change_new: { kind: 'email_change_new', link: changeLink, expiresAt: at + HOUR },
  email_changed: { kind: 'email_changed', at, newEmail: 'ada@example.org', network },
  webhook_disabled: {
    kind: 'webhook_disabled',
    at,
    webhookId: '0190a5b8-7c3e-7abc-8def-0123456789ab',
    host: 'hooks.example.com',
    failure: 'status 500',
  },
  test: { kind: 'test' },
}

export const EXAMPLES: readonly MessageContent[] = Object.values(EXAMPLE)

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
