import { type Audit, type By, performed } from '../audit/audit.ts'
import type { Clock } from '../clock.ts'
import type { Invitations } from '../invitations/invitations.ts'
import type { Log } from '../log.ts'
import type { Caller } from '../network.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { PolicyRegistry } from '../policies/policies.ts'
import type { Secrets } from '../secrets.ts'
import { sha256 } from '../secrets.ts'
import type { SignInKind } from '../sessions/session.ts'
import type { Sessions, StartedSession } from '../sessions/sessions.ts'
import type { Storage } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import { matchesAddress } from '../users/erased-address.ts'
import type { ListedAdministrators } from '../users/listed-administrators.ts'
import { linkState } from './magic-link.ts'
import { createSend } from './send.ts'
import { bucketNamesOf, type SendLimits } from './send-limits.ts'
import type { SignUpRule } from './sign-up.ts'
import { codeMailbox } from './typed-code.ts'
import { createVerify } from './verify.ts'

export interface LinkToken {
  token: string
  email: EmailAddress
  appId?: string
  /** The `login_id`s of links that this browser provably requested. */
  askedFor?: readonly string[]
}

export interface TypedCode {
  loginId: string
  code: string
  email: EmailAddress
  appId?: string
  /** Whether this browser is recognised: it proved an earlier sign-in to the address; see code-limits.ts. */
  isReturning?: boolean
}

export type MagicLinkProof = LinkToken | TypedCode

/** State of a link for a caller that has its token; shown on the confirmation page, which does not consume it. */
export type LinkState = 'live' | 'used' | 'expired' | 'invalid'

export interface MagicLinks {
  /**
   * Queues one mail with a link and a code. Timing and response do not depend on whether the address has an account.
   *
   * @param wanted `isReturning`: this browser proved an earlier sign-in to the address, so that its sends are counted
   *   apart from those that strangers request; `locale`: the language that was asked for (BCP 47)
   * @throws KeywayError `rate_limited` with the longest wait and its window
   */
  send(
    wanted: { email: EmailAddress; appId: string; isReturning?: boolean; locale?: string | null },
    caller: Caller,
  ): Promise<{ loginId: string; expiresIn: number }>
  /**
   * Consumes the link and signs in, creating the account where there is none.
   *
   * @throws KeywayError `magic_link_invalid`, `magic_link_expired`, `magic_link_used`, `account_suspended`,
   *   `forbidden` (no account, and the policies allow none); for a code `rate_limited`, where it was not checked
   */
  verify<Kind extends SignInKind>(
    proof: MagicLinkProof,
    kind: Kind,
    caller: Caller,
  ): Promise<StartedSession<Kind> & { isNewUser: boolean }>
  /**
   * The state of the link, without consuming it. `loginId` (null for `invalid`) lets a page recognise the browser
   * that requested the link.
   */
  inspect(token: string, email: EmailAddress): Promise<{ state: LinkState; loginId: string | null }>
  /** Resets the counts of sign-in mails to the address and of wrong codes typed for it. */
  clearLimits(email: EmailAddress, by: By): Promise<void>
}

export interface MagicLinkDeps extends SendLimits {
  storage: Storage
  clock: Clock
  secrets: Secrets
  outbox: Outbox
  sessions: Sessions
  audit: Audit
  listed: Pick<ListedAdministrators, 'prepare' | 'claim'>
  policies: Pick<PolicyRegistry, 'read'>
  maySignUp: SignUpRule
  invitations: Pick<Invitations, 'accept' | 'giveRole'>
  log: Log
  /** The page that mailed links open, unless the app has one of its own. */
  verifyUrl: string
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

    async clearLimits(email, by) {
      const userId = (await storage.store.users.findByEmail(email))?.id ?? null
      await audit.perform(by, async tx => {
        for (const bucket of bucketNamesOf(email)) await tx.magicLinks.clearSends(bucket)
        await tx.wrongCodes.clearMailbox(codeMailbox(secrets, email))
        const subject = { type: 'address' as const, id: null, user_id: userId }
        return performed(undefined, { type: 'user.limits_cleared', subject, before: null, after: null })
      })
    },
  }
}
