import { DAY, type Instant } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { HookProvider } from './mail-hook.ts'

/** How long an address gets no mail after a bounce or a complaint. */
export const SUPPRESSED_FOR = 7 * DAY

export type SuppressionReason = 'bounce' | 'complaint'

/** An address that a mail provider reported. It gets no mail, since that would harm the sender's reputation. */
export interface Suppression {
  address: EmailAddress
  reason: SuppressionReason
  provider: HookProvider
  at: Instant
  until: Instant
}
