import { DAY, type Instant } from '../clock.ts'
import type { Secrets } from '../secrets.ts'
import type { Transaction } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { MessageContent, MessageKind } from './message.ts'

/** A written mail, ready to be sent. */
export interface Mail {
  /** The id of the outbox row: the same on every attempt. */
  messageId: string
  to: EmailAddress
  subject: string
  text: string
  html: string
  template: string
  /** The link in the mail, for the local inbox only; null if the mail has none. */
  link: string | null
  /** The code in the mail, for the local inbox only; null if the mail has none. */
  code: string | null
}

/** Sends mail: by SMTP, through a provider's API, or into the local inbox. */
export interface Mailer {
  /** Resolves once the mail is accepted. @throws MailRejected (not retryable) or anything else (retryable) */
  deliver(mail: Mail, signal: AbortSignal): Promise<void>
  /** Rejects unless the server or provider answers and accepts the credentials; for `doctor` and `mail test`. */
  check(): Promise<void>
  close(): void
}

/** The error for a mail that was rejected permanently. */
export class MailRejected extends Error {
  override readonly name = 'MailRejected'
}

/** Writes a mail. `locale` (BCP 47) chooses its language, `hasAccount` the template of a sign-in mail. */
export type MailWriter = (
  message: { id: string; recipient: EmailAddress; content: MessageContent; locale: string | null },
  hasAccount: boolean,
) => Mail | Promise<Mail>

export interface Outbox {
  /**
   * Queues a mail inside the caller's transaction and publishes `mail.queued`. The caller creates `id` before the
   * transaction, so that a retried transaction queues it once. A mail with a `userId` is not queued if the account had
   * `MAX_NOTICES_PER_DAY` of its kind in the last day.
   */
  enqueue(
    tx: Transaction,
    message: {
      id: string
      recipient: EmailAddress
      userId: string | null
      content: MessageContent
      now: Instant
      sendBefore?: Instant
      /** The requested language (BCP 47), for a recipient who has chosen none. */
      locale?: string | null
    },
  ): Promise<void>
}

export interface Dispatcher {
  /** Delivers due mail until stopped; polls after `mail.queued` and by a timer. */
  start(): void
  /** Leases no new message and waits at most `timeoutMs` for deliveries in progress; the rest stays queued. */
  stop(timeoutMs: number): Promise<void>
  /** Delivers everything that is due now, for tests and commands. Returns the number of mails sent. */
  drain(): Promise<number>
}

export interface InboxItem {
  id: string
  to: EmailAddress
  subject: string
  template: string
  link: string | null
  code: string | null
  text: string
  html: string
  createdAt: Instant
}

export interface Inbox {
  /**
   * The mails of the last day, at most 200, newest first; of all recipients if `recipient` is null. Leaves out mails
   * that no secret of KEYWAY_SECRET opens.
   */
  list(recipient: EmailAddress | null): Promise<InboxItem[]>
  /** The complete MIME message of one mail, as it would be sent by SMTP; null if `list` would not show the mail. */
  source(id: string): Promise<string | null>
}

/**
 * Maximum number of notices of one kind to one account in a day: one for each key that may be active by default. An
 * account with hundreds of keys could otherwise cause thousands of mails, which use up the provider's quota and delay
 * people's sign-in mails. Each kind has its own limit, so that many notices of one kind do not suppress a warning of
 * another.
 */
export const MAX_NOTICES_PER_DAY = 100

/**
 * Whether the account has reached the daily limit of notices of this kind. Not exact for concurrent transactions, since
 * no row is locked.
 */
async function isLimitReached(
  tx: Transaction,
  userId: string,
  kind: MessageKind,
  now: Instant,
): Promise<boolean> {
  return (await tx.outbox.countNotices(userId, kind, now - DAY, MAX_NOTICES_PER_DAY)) >= MAX_NOTICES_PER_DAY
}

/** Seals content with purpose `mail` and the message's id as context, so that a dump reveals no link and no code. */
export function createOutbox({ secrets }: { secrets: Secrets }): Outbox {
  return {
    async enqueue(tx, { id, recipient, userId, content, now, sendBefore, locale }) {
      if (userId !== null && (await isLimitReached(tx, userId, content.kind, now))) return
      const isInserted = await tx.outbox.insert({
        id,
        kind: content.kind,
        recipient,
        userId,
        sealedContent: secrets.seal(
          'mail',
          Buffer.from(JSON.stringify(locale ? { ...content, locale } : content)),
          id,
        ),
        state: 'queued',
        attempts: 0,
        createdAt: now,
        nextAttemptAt: now,
        sendBefore: sendBefore ?? null,
        leasedUntil: null,
        settledAt: null,
        lastError: null,
      })
      if (isInserted) tx.publish({ type: 'mail.queued' })
    },
  }
}
