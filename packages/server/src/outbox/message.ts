import type { Instant } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'

/**
 * The parameters of a mail's template. They are stored sealed, and erased as `OutboxMessage.sealedContent` says. The
 * template of a sign-in mail is chosen when the mail is written, so that a request does the same work whether or not
 * the account exists. Mails about keys that earlier versions queued have no `keyId`.
 */
export type MessageContent =
  /**
   * `client` is the User-Agent of the request, of which the mail only names a known browser; earlier versions did not
   * queue it.
   */
  | { kind: 'sign_in'; link: string; code: string; expiresAt: Instant; client?: string | null }
  | { kind: 'invitation'; link: string; expiresAt: Instant }
  | { kind: 'welcome'; trialCredit: string }
  | { kind: 'refresh_token_reused'; at: Instant; network: string; client: string | null }
  | {
      kind: 'api_key_revoked_by_holder'
      at: Instant
      keyId?: string
      keyPrefix: string
      keyName: string | null
    }
  | {
      kind: 'api_key_expiring'
      expiresAt: Instant
      keyId?: string
      keyPrefix: string
      keyName: string | null
      days: number
    }
  | {
      kind: 'api_key_used_again'
      at: Instant
      keyId?: string
      keyPrefix: string
      keyName: string | null
      network: string
    }
  | {
      kind: 'api_key_limit'
      at: Instant
      limit: 'spend' | 'requests' | 'quota'
      per: 'second' | 'minute' | 'hour' | 'day' | 'month' | 'total'
      percent: 80 | 100
      /** The limit in calls, or in micro-dollars for `spend`; absent in mails that earlier versions queued. */
      allowed?: number
      /** What was used, in the unit of `allowed`; absent if unknown, and in mails that earlier versions queued. */
      used?: number
      keyId?: string
      keyPrefix: string
      keyName: string | null
    }
  | {
      kind: 'api_key_new_network'
      at: Instant
      keyId?: string
      keyPrefix: string
      keyName: string | null
      network: string
    }
  | {
      kind: 'api_key_created_by_device'
      at: Instant
      keyId?: string
      keyPrefix: string
      keyName: string | null
      deviceName: string | null
      network: string
    }
  | { kind: 'account_deletion_requested'; at: Instant; deletesAt: Instant; network: string }
  /** Sent to the account's current address, which must confirm the change. */
  | { kind: 'email_change_old'; link: string; newEmail: string; expiresAt: Instant; network: string }
  /** Sent to the new address, which must confirm the change too. */
  | { kind: 'email_change_new'; link: string; expiresAt: Instant }
  /** Sent to the account's previous address after a change. */
  | { kind: 'email_changed'; at: Instant; newEmail: string; network: string }
  | { kind: 'webhook_disabled'; at: Instant; webhookId: string; host: string; failure: string }
  | { kind: 'test' }

/** The content as it is queued, with the language that the request asked for (BCP 47). */
export type QueuedContent = MessageContent & { locale?: string }

export type MessageKind = MessageContent['kind']
export type MessageState = 'queued' | 'sent' | 'failed' | 'expired'

/** One mail in the outbox. Its id is part of the Message-ID, so that a mail sent twice is recognisable as one. */
export interface OutboxMessage {
  id: string
  kind: MessageKind
  recipient: EmailAddress
  userId: string | null
  /**
   * The content as JSON, sealed with purpose `mail` and the id as context. Null once the mail was sent, or if a sign-in
   * mail failed or expired: the content of other failed mails is kept, since they may be queued again.
   */
  sealedContent: string | null
  state: MessageState
  attempts: number
  createdAt: Instant
  nextAttemptAt: Instant
  /** The mail is not sent after this instant; null if it may be sent at any time. */
  sendBefore: Instant | null
  leasedUntil: Instant | null
  settledAt: Instant | null
  lastError: string | null
}

/**
 * Whether the mail may not be sent any more. Only mails with links have a `sendBefore`: when the link expires, or
 * shortly before. It stays the same when the mail is queued again.
 */
export function isPastDeadline({ sendBefore }: Pick<OutboxMessage, 'sendBefore'>, now: Instant): boolean {
  return sendBefore !== null && now > sendBefore
}
