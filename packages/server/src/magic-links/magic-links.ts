import { type ActedBy, auditedOutcome } from '../audit/audit.ts'
import type { Instant } from '../clock.ts'
import type { Caller } from '../network.ts'
import { sha256 } from '../secrets.ts'
import type { SignInKind } from '../sessions/session.ts'
import type { StartedSession } from '../sessions/sessions.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { matchesAddress } from '../users/erased-address.ts'
import { CODE_WINDOW, codesRefusedUntil } from './code-limits.ts'
import { linkState, type MagicLinkProof } from './magic-link.ts'
import type { MagicLinkDeps } from './magic-link-deps.ts'
import { createSend } from './send.ts'
import { addressBucketsOf, bucketNamesOf, type Refusal, refusalByRead } from './send-limits.ts'
import { mailboxHashOf } from './typed-code.ts'
import { createVerify } from './verify.ts'

/** State of a link for a caller that has its token. The confirmation page shows it without consuming the link. */
export type LinkState = 'live' | 'used' | 'expired' | 'invalid'

/** What the sign-in limits of an address currently refuse, apart from limits of networks. */
export interface SignInLimits {
  /** The refusal of a mail that an unrecognised browser requests; null if it would be sent. */
  mails: Refusal | null
  /** The refusal of a mail that a recognised browser requests; null if it would be sent. */
  returningMails: Refusal | null
  /**
   * Until when codes typed in unrecognised browsers are refused, by the limits of this address or of all addresses;
   * null if they are checked.
   */
  codesBlockedUntil: Instant | null
}

export interface MagicLinks {
  /**
   * Queues one mail with a link and a code. Timing and response do not depend on whether the address has an account.
   *
   * @param wanted `isReturning`: whether this browser proved an earlier sign-in to the address, so that its sends are
   *   counted apart from those that strangers request; `locale`: the requested language (BCP 47)
   * @throws KeywayError `rate_limited` with the longest wait and its window
   */
  send(
    wanted: { email: EmailAddress; appId: string; isReturning?: boolean; locale?: string | null },
    caller: Caller,
  ): Promise<{ loginId: string; expiresIn: number }>
  /**
   * Consumes the link and signs in, creating the account if there is none.
   * @throws KeywayError `magic_link_invalid`, `magic_link_expired`, `magic_link_used`, `account_suspended`, `forbidden`
   * (sign-up is not open to the address), `rate_limited` (for a code)
   */
  verify<Kind extends SignInKind>(
    proof: MagicLinkProof,
    kind: Kind,
    caller: Caller,
  ): Promise<StartedSession<Kind> & { isNewUser: boolean }>
  /**
   * The state of the link, which is not consumed. By `loginId` (null if the state is `invalid`) a page recognises
   * whether this browser requested the link.
   */
  inspect(token: string, email: EmailAddress): Promise<{ state: LinkState; loginId: string | null }>
  limitsOf(email: EmailAddress): Promise<SignInLimits>
  /** Resets the limits of an address, for mails and for wrong codes, and records that in the audit. */
  clearLimits(email: EmailAddress, by: ActedBy): Promise<void>
}

export function createMagicLinks(deps: MagicLinkDeps): MagicLinks {
  const { storage, clock, secrets, audit } = deps

  return {
    send: createSend(deps),
    verify: createVerify(deps),

    async inspect(token, email) {
      const link = await storage.store.magicLinks.findByTokenHash(sha256(token))
      if (!link || !matchesAddress(secrets, email, link.email)) return { state: 'invalid', loginId: null }
      return { state: linkState(link, clock.now()), loginId: link.id }
    },

    async limitsOf(email) {
      const { magicLinks, wrongCodes } = storage.store
      const now = clock.now()
      const mailbox = mailboxHashOf(secrets, email)
      const [own, returning] = addressBucketsOf(email, deps.limits)
      const [mails, returningMails, wrong] = await Promise.all([
        refusalByRead(magicLinks, [own], now),
        refusalByRead(magicLinks, [returning], now),
        wrongCodes.findCounted(mailbox, now - CODE_WINDOW),
      ])
      const codesBlockedUntil = codesRefusedUntil({ mailbox, isReturning: false, networks: [] }, wrong)
      return { mails, returningMails, codesBlockedUntil }
    },

    async clearLimits(email, by) {
      const userId = (await storage.store.users.findByEmail(email))?.id ?? null
      await audit.perform(by, async tx => {
        for (const bucket of bucketNamesOf(email)) await tx.magicLinks.clearSends(bucket)
        await tx.wrongCodes.clearMailbox(mailboxHashOf(secrets, email))
        const subject = { type: 'address' as const, id: null, user_id: userId }
        return auditedOutcome(undefined, { type: 'user.limits_cleared', subject, before: null, after: null })
      })
    },
  }
}
