import type { HookCall, HookHeader } from '../../outbox/mail-hook.ts'
import { equals } from '../../secrets.ts'
import { type HookReading, parseObject } from './report.ts'

/** Postmark's types of permanent bounces; those of soft bounces, delays and auto-replies are left out. */
const PERMANENT_BOUNCES = new Set([
  'HardBounce',
  'BadEmailAddress',
  'ManuallyDeactivated',
  'Blocked',
  'SpamNotification',
])

/**
 * Reads a webhook call of Postmark. It is not signed: Postmark's documentation recommends credentials in the webhook's
 * URL, and Postmark sends them as HTTP Basic. The password is the secret, the user name is ignored.
 */
export function readPostmark({ header, body }: HookCall, secret: string): HookReading {
  if (!isFromPostmark(header, secret)) return 'forged'
  const event = parseObject(body)
  if (!event) return 'unreadable'
  const addresses = [event.Email].filter(address => typeof address === 'string')
  if (event.RecordType === 'SpamComplaint') return { addresses, reason: 'complaint' }
  const isPermanent = PERMANENT_BOUNCES.has(String(event.Type)) || event.Inactive === true
  return event.RecordType === 'Bounce' && isPermanent ? { addresses, reason: 'bounce' } : 'irrelevant'
}

export function isFromPostmark(header: HookHeader, secret: string): boolean {
  const [, encoded = ''] = /^basic +(\S+)$/i.exec(header('authorization') ?? '') ?? []
  const credentials = Buffer.from(encoded, 'base64').toString()
  const password = credentials.slice(credentials.indexOf(':') + 1)
  return credentials.includes(':') && equals(password, secret)
}
