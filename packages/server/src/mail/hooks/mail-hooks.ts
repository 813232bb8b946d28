import type { Clock } from '../../clock.ts'
import type { MailHooks } from '../../outbox/mail-hook.ts'
import type { SuppressionReason } from '../../outbox/suppression.ts'
import type { Suppressions } from '../../outbox/suppressions.ts'
import { isFromPostmark, readPostmark } from './postmark.ts'
import { mayBeFromResend, readResend } from './resend.ts'

/** What a provider told, as far as it matters here: these addresses take no mail, or want none. */
export interface Report {
  addresses: string[]
  reason: SuppressionReason
}

/** `forged`: nothing shows that the provider sent it. `unreadable`: it did, and it is no JSON object. */
export type HookReading = Report | 'forged' | 'unreadable' | 'irrelevant'

/** Bounces and complaints, as Resend and Postmark post them. */
export function createMailHooks({
  secret,
  clock,
  suppressions,
}: {
  secret: string
  clock: Clock
  suppressions: Pick<Suppressions, 'record'>
}): MailHooks {
  return {
    mayBeFrom: (provider, header) =>
      provider === 'resend' ? mayBeFromResend(header, clock.now()) : isFromPostmark(header, secret),
    async receive(provider, call) {
      const reading =
        provider === 'resend' ? readResend(call, secret, clock.now()) : readPostmark(call, secret)
      if (reading === 'forged' || reading === 'unreadable') return reading
      if (reading !== 'irrelevant') await suppressions.record(reading, provider)
      return 'accepted'
    },
  }
}

/** The members of a JSON object, or null. */
export function parseObject(body: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body.toString())
    return value !== null && typeof value === 'object' && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}
