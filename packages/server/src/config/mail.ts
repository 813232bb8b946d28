import { isLoopbackHost } from '../network.ts'
import { type EmailAddress, parseEmailAddress } from '../users/email-address.ts'
import type { Config } from './config-type.ts'
import { Mistake } from './mistakes.ts'
import type { Parser } from './values.ts'

const MAIL_FORMS = 'must be inbox:, smtp://…, smtps://…, resend://KEY or postmark://TOKEN'

export const mail: Parser<Config['mail']> = text => {
  if (text === 'inbox:') return { kind: 'inbox' }
  const [, scheme, rest = ''] = /^([a-z]+):\/\/(.+)$/s.exec(text) ?? []
  if (scheme === 'resend') return { kind: 'resend', key: providerKey(rest) }
  if (scheme === 'postmark') return { kind: 'postmark', token: providerKey(rest) }
  if (scheme === 'smtp' || scheme === 'smtps') return smtp(text)
  throw new Mistake(MAIL_FORMS)
}

function providerKey(text: string): string {
  const key = percentDecode(text.replace(/\/$/, ''))
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Mistake("must have the provider's key after the ://")
  return key
}

function smtp(text: string): Config['mail'] {
  if (!URL.canParse(text))
    throw new Mistake('is not a URL: percent-encode special characters of the user and the password')
  const url = new URL(text)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const secure = url.protocol === 'smtps:'
  if (!host) throw new Mistake('must name the host of the mail server')
  const hasOtherQuery = [...url.searchParams].some(
    ([name, value]) => name !== 'tls' || value !== 'off' || secure,
  )
  if (hasOtherQuery || url.hash || !/^\/?$/.test(url.pathname))
    throw new Mistake('may end in ?tls=off (smtp:// only) and nothing else after the port')
  return {
    kind: 'smtp',
    host,
    port: url.port ? Number(url.port) : secure ? 465 : 587,
    secure,
    requireTls: requiresStartTls(url),
    user: url.username ? percentDecode(url.username) : null,
    password: url.password ? percentDecode(url.password) : null,
  }
}

function percentDecode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Mistake('has a % that is not followed by two hex digits: write a lone % as %25')
  }
}

const MIN_HOOK_SECRET_LENGTH = 16

export const hookSecret: Parser<string> = text => {
  const isValidKey =
    !text.startsWith('whsec_') || Buffer.from(text.slice(6), 'base64').length >= MIN_HOOK_SECRET_LENGTH
  if (isValidKey && text.length >= MIN_HOOK_SECRET_LENGTH && /^[\x21-\x7e]+$/.test(text)) return text
  throw new Mistake(
    `must be the signing secret that the provider shows, or at least ${MIN_HOOK_SECRET_LENGTH} random characters without spaces`,
  )
}

const ADDRESS = /^[^\s<>@,;:"]+@[^\s<>@,;:"]+$/

export const address: Parser<string> = text => {
  if (ADDRESS.test(text)) return text
  throw new Mistake(`must be one e-mail address, not ${JSON.stringify(text)}`)
}

/** An address in the canonical form in which accounts store it. */
export const emailAddress: Parser<EmailAddress> = text => {
  const email = parseEmailAddress(text)
  if (email) return email
  throw new Mistake(`must list plain e-mail addresses, not ${JSON.stringify(text)}`)
}

export const sender: Parser<Config['mailFrom']> = text => {
  const [, name = '', mailAddress = text] = /^([^<]*)<([^<>]+)>$/s.exec(text) ?? []
  const displayName = name
    .trim()
    .replace(/^"(.*)"$/, '$1')
    .trim()
  if (!ADDRESS.test(mailAddress) || /[\u0000-\u001f\u007f<>]/.test(displayName))
    throw new Mistake(`must be an address with or without a name, not ${JSON.stringify(text)}`)
  return { name: displayName || 'Keyway', address: mailAddress }
}

export function mailMistakes(config: Config, values: { KEYWAY_SUPPORT_EMAIL: string | undefined }): string[] {
  const mistakes: string[] = []
  if (config.mail.kind === 'inbox' && !isLoopbackHost(new URL(config.publicUrl).hostname))
    mistakes.push(
      'KEYWAY_MAIL_URL is inbox:, which shows every mail to all visitors, but KEYWAY_PUBLIC_URL is not loopback. ' +
        'Example: KEYWAY_MAIL_URL=smtp://user:password@smtp.example.com:587',
    )
  if (config.mail.kind !== 'inbox' && values.KEYWAY_SUPPORT_EMAIL === undefined)
    mistakes.push(
      'KEYWAY_SUPPORT_EMAIL is missing: every mail contains it. Example: KEYWAY_SUPPORT_EMAIL=support@example.com',
    )
  return mistakes
}

export function mailWarnings({ mail, mailFrom }: Config): string[] {
  return mail.kind !== 'inbox' && mailFrom.address.endsWith('@localhost')
    ? [
        'KEYWAY_MAIL_FROM is an address at localhost, which most mail servers refuse. Set KEYWAY_MAIL_FROM=Keyway <no-reply@example.com>.',
      ]
    : []
}

/**
 * Whether STARTTLS is required (RFC 3207): for `smtp:`, except to loopback or with `?tls=off`. If it were optional, an
 * attacker could strip STARTTLS from the greeting and read the password.
 *
 * @param url `smtp:`, or `smtps:`, which uses TLS from the start and needs no STARTTLS
 */
function requiresStartTls(url: URL): boolean {
  return url.protocol === 'smtp:' && !isLoopbackHost(url.hostname) && url.searchParams.get('tls') !== 'off'
}
