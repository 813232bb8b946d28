import { type Instant, MINUTE, SECOND } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'

/**
 * What a mail says, before it is written. Kept sealed while queued and erased on delivery. Whether a sign-in
 * mail is the one for strangers or for customers is decided when it is written, so that the request that
 * queued it did the same work for both.
 */
export type MessageContent =
  | { kind: 'sign_in'; link: string; code: string; expiresAt: Instant }
  | { kind: 'welcome'; trialCredit: string }
  | { kind: 'refresh_token_reused'; at: Instant; network: string; client: string | null }
  | { kind: 'api_key_revoked_by_holder'; at: Instant; keyPrefix: string; keyName: string | null }
  | { kind: 'api_key_expiring'; expiresAt: Instant; keyPrefix: string; keyName: string | null; days: number }
  | { kind: 'api_key_used_again'; at: Instant; keyPrefix: string; keyName: string | null; network: string }
  | { kind: 'test' }

export type MessageKind = MessageContent['kind']
export type MessageState = 'queued' | 'sent' | 'failed' | 'expired'

/** One mail in the outbox. Its id makes the Message-ID, so a mail sent twice is recognisable as one. */
export interface OutboxMessage {
  id: string
  kind: MessageKind
  recipient: EmailAddress
  userId: string | null
  /** Sealed JSON of the content (purpose `mail`, context the id); null once it has left. */
  sealedContent: string | null
  state: MessageState
  attempts: number
  createdAt: Instant
  nextAttemptAt: Instant
  /** After this it is not worth sending; null: any time. */
  sendBefore: Instant | null
  leasedUntil: Instant | null
  settledAt: Instant | null
  lastError: string | null
}

/** A sign-in mail with less validity left than this is not sent: nobody could use it in time. */
export const MIN_VALIDITY_LEFT = 60 * SECOND
/** How long a node may take for one delivery before another node may try. */
export const LEASE = 2 * MINUTE
/**
 * Attempts wait 2 s, 4 s, 8 s … up to this, each with jitter. Short, so that everything has left within a minute of
 * a provider that comes back.
 */
export const MAX_BACKOFF = MINUTE
export const MIN_BACKOFF = 2 * SECOND
/** Mail without a validity of its own is given up after this. */
export const GIVE_UP_AFTER = 3 * 24 * 60 * MINUTE

/** The wait before the next attempt after `failures` of them: doubling, and half of it drawn (`random` in [0, 1)). */
export function backoff(failures: number, random: number): number {
  const longest = Math.min(MAX_BACKOFF, MIN_BACKOFF * 2 ** Math.min(failures - 1, 16))
  return Math.round(longest / 2 + (longest / 2) * random)
}

/** When it stops being worth sending, or null: the validity of what a sign-in mail carries decides too. */
export function lastUsefulInstant(message: OutboxMessage, content: MessageContent): Instant | null {
  if (content.kind !== 'sign_in') return message.sendBefore
  return Math.min(content.expiresAt - MIN_VALIDITY_LEFT, message.sendBefore ?? Number.POSITIVE_INFINITY)
}
