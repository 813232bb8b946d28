import type { Caller } from '../network.ts'
import type { SessionKind } from '../sessions/session.ts'
import type { StartedSession } from '../sessions/sessions.ts'
import type { EmailAddress } from '../users/user.ts'

export type MagicLinkProof =
  | { token: string; email: EmailAddress; appId?: string }
  | { loginId: string; code: string; email: EmailAddress }

/** What can be said of a link to whoever holds its token, without spending it: for the page that shows one button. */
export type LinkState = 'live' | 'used' | 'expired' | 'invalid'

export interface MagicLinks {
  /**
   * Queues one mail with a link and a code. The work and the answer are the same for strangers and customers.
   *
   * @throws KeywayError `rate_limited` with the longest wait and its window
   */
  send(
    wanted: { email: EmailAddress; appId: string },
    caller: Caller,
  ): Promise<{ loginId: string; expiresIn: number }>
  /**
   * Spends the link and signs in, making the account where there is none.
   *
   * @throws KeywayError `magic_link_invalid`, `magic_link_expired`, `magic_link_used`, `account_suspended`
   */
  verify(
    proof: MagicLinkProof,
    kind: SessionKind,
    caller: Caller,
  ): Promise<StartedSession & { isNewUser: boolean }>
  inspect(token: string, email: EmailAddress): Promise<LinkState>
}
