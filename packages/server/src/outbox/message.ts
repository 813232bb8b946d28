import type { Instant } from '../clock.ts'
import type { EmailAddress } from '../users/email-address.ts'

/**
 * The parameters of a mail's template. Sealed while queued and erased on delivery. The template of a sign-in mail is
 * chosen when the mail is written, so that a request does the same work whether the account exists or not. Mails about keys
 * that earlier versions queued have no `keyId`.
 */
export type MessageContent =
  /** `client`, since this version: the User-Agent of the request, of which the mail names a known browser at most. */
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
      /** Calls, or micro-dollars of a spend limit. Earlier versions queued neither; `used` may be unknown. */
      allowed?: number
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
  /** To the address that an account has, and to the one that it is to have. */
  | { kind: 'email_change_old'; link: string; newEmail: string; expiresAt: Instant; network: string }
  | { kind: 'email_change_new'; link: string; expiresAt: Instant }
  /** To the address that the account had. */
  | { kind: 'email_changed'; at: Instant; newEmail: string; network: string }
  | { kind: 'webhook_disabled'; at: Instant; webhookId: string; host: string; failure: string }
  | { kind: 'test' }

/** The queued form, with the language that the request asked for. */
export type QueuedContent = MessageContent & { locale?: string }

export type MessageKind = MessageContent['kind']
export type MessageState = 'queued' | 'sent' | 'failed' | 'expired'

/** One mail in the outbox. Its id is part of the Message-ID, so that a mail sent twice is recognisable as one. */
export interface OutboxMessage {
  id: string
  kind: MessageKind
  recipient: EmailAddress
  userId: string | null
  /** Sealed JSON of the content (purpose `mail`, context the id); null once it is settled. */
  sealedContent: string | null
  state: MessageState
  attempts: number
  createdAt: Instant
  nextAttemptAt: Instant
  /** Not sent after this instant; null: no limit. */
  sendBefore: Instant | null
  leasedUntil: Instant | null
  settledAt: Instant | null
  lastError: string | null
}
