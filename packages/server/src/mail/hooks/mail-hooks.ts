import type { Clock } from '../../clock.ts'
import type { MailHooks } from '../../outbox/mail-hook.ts'
import type { Suppressions } from '../../outbox/suppressions.ts'
import { isFromPostmark, readPostmark } from './postmark.ts'
import { mayBeFromResend, readResend } from './resend.ts'

/** Receives bounces and complaints from the webhooks of Resend and Postmark. */
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
      const outcome =
        provider === 'resend' ? readResend(call, secret, clock.now()) : readPostmark(call, secret)
      if (outcome === 'forged' || outcome === 'unreadable') return outcome
      if (outcome !== 'irrelevant') await suppressions.record(outcome, provider)
      return 'accepted'
    },
  }
}
