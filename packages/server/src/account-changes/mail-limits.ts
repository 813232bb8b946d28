import type { Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { MagicLinkStore } from '../magic-links/magic-link-store.ts'
import { type Refusal, type SendBucket, sendWithinLimits } from '../magic-links/send-limits.ts'
import type { RateWindow } from '../rate-windows.ts'

/**
 * Limit of account changes that cause mail, deletion requests included: more than anybody needs, but too few to flood a
 * mailbox.
 */
export const ACCOUNT_MAIL_LIMITS: readonly RateWindow[] = [{ window: 'day', limit: 5 }]

/** The counter of an account's changes that cause mail; sign-in mails have counters of their own. */
export function accountBucket(userId: string): SendBucket {
  return { name: `account:${userId}`, windows: ACCOUNT_MAIL_LIMITS }
}

/**
 * Counts one mail within the transaction and returns null. If the limit is reached, counts nothing and returns the
 * seconds to wait.
 */
export async function countMail(store: MagicLinkStore, userId: string, now: Instant): Promise<number | null> {
  const refusal = await sendWithinLimits(store, [accountBucket(userId)], now, async () => {})
  return refusal ? refusal.retryAfter : null
}

/** @throws KeywayError `rate_limited` */
export function throwRateLimited(retryAfter: number, window: Refusal['window'] = 'day'): never {
  const detail = `Too many changes of this account or mails to this address within this ${window}. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
  throw new KeywayError('rate_limited', detail, { retryAfter, window })
}
