import { type Instant, MINUTE, SECOND } from '../../clock.ts'
import type { HookCall, HookHeader } from '../../outbox/mail-hook.ts'
import { equals, hmac } from '../../secrets.ts'
import { type HookReading, parseObject } from './report.ts'

/** Maximum difference between a call's timestamp and this service's time, which bounds replays. */
const TOLERANCE = 5 * MINUTE
const SECRET_PREFIX = 'whsec_'

/**
 * Reads a webhook call of Resend, which is signed as Svix does (docs.svix.com, "Verifying webhooks manually"): with the
 * HMAC-SHA-256 of id, time and body, whose key is the base64 after `whsec_`. While the secret is being rotated, a call
 * has several signatures.
 */
export function readResend({ header, body }: HookCall, secret: string, now: Instant): HookReading {
  if (!mayBeFromResend(header, now)) return 'forged'
  const id = header('svix-id')
  const time = header('svix-timestamp')
  const signatures = header('svix-signature')!
  // Without the prefix it is not a secret of Resend, and could decode to an empty HMAC key.
  if (!secret.startsWith(SECRET_PREFIX)) return 'forged'
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  const expectedSignature = `v1,${hmac(key, Buffer.concat([Buffer.from(`${id}.${time}.`), body])).toString('base64')}`
  if (!signatures.split(' ').some(signature => equals(signature, expectedSignature))) return 'forged'

  const event = parseObject(body)
  if (!event) return 'unreadable'
  const data = (event.data ?? {}) as { to?: unknown; bounce?: { type?: unknown } }
  const addresses = [data.to ?? []].flat().filter(address => typeof address === 'string')
  if (event.type === 'email.complained') return { addresses, reason: 'complaint' }
  // A transient bounce (a full mailbox, greylisting) does not suppress the address.
  const isPermanent = data.bounce?.type !== 'Transient'
  return event.type === 'email.bounced' && isPermanent ? { addresses, reason: 'bounce' } : 'irrelevant'
}

/** Whether the headers have a signature, which is not verified here, and a recent timestamp. */
export function mayBeFromResend(header: HookHeader, now: Instant): boolean {
  const time = header('svix-timestamp') ?? ''
  const isRecent = /^\d{1,12}$/.test(time) && Math.abs(Number(time) * SECOND - now) <= TOLERANCE
  return isRecent && Boolean(header('svix-id') && header('svix-signature'))
}
