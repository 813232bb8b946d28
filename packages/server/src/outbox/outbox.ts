import type { Instant } from '../clock.ts'
import type { Secrets } from '../secrets.ts'
import type { Transaction } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'
import type { MessageContent } from './message.ts'

/** A written mail, ready to leave. */
export interface Mail {
  /** From the outbox row's id: the same on every attempt. */
  messageId: string
  to: EmailAddress
  subject: string
  text: string
  html: string
  /** The name of the template it was written from. */
  template: string
  /** For the local inbox only; null where the mail has none. */
  link: string | null
  code: string | null
}

/** Whatever takes mail from here: SMTP, a provider's API, the local inbox. */
export interface Mailer {
  /** Resolves once the other side has taken the mail. @throws MailRejected (never again) or anything else (again later) */
  deliver(mail: Mail, signal: AbortSignal): Promise<void>
  /** Whether the other side answers, for `doctor` and `mail test`. */
  check(): Promise<void>
  close(): void
}

/** The other side will never take this mail. */
export class MailRejected extends Error {
  override readonly name = 'MailRejected'
}

/** Writes a mail. `hasAccount` decides between the mails for strangers and customers. */
export type MailWriter = (
  message: { id: string; recipient: EmailAddress; content: MessageContent },
  hasAccount: boolean,
) => Mail

export interface Outbox {
  /**
   * Queues a mail inside the caller's transaction and announces it. `id` is made before, so a retried
   * transaction queues it once.
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
    },
  ): Promise<void>
}

export interface Dispatcher {
  /** Delivers what is due until stopped; wakes on `mail.queued` and on its own timer. */
  start(): void
  /** Takes no new message, waits for the deliveries under way (at most `deadline` ms); the rest stays queued. */
  stop(deadline: number): Promise<void>
  /** Delivers everything that is due now; for tests and commands. Returns how many left. */
  drain(): Promise<number>
}

/** The content is sealed under `mail` with the message's id as context, so that a dump shows no link and no code. */
export function createOutbox({ secrets }: { secrets: Secrets }): Outbox {
  return {
    async enqueue(tx, { id, recipient, userId, content, now, sendBefore }) {
      const inserted = await tx.outbox.insert({
        id,
        kind: content.kind,
        recipient,
        userId,
        sealedContent: secrets.seal('mail', Buffer.from(JSON.stringify(content)), id),
        state: 'queued',
        attempts: 0,
        createdAt: now,
        nextAttemptAt: now,
        sendBefore: sendBefore ?? null,
        leasedUntil: null,
        settledAt: null,
        lastError: null,
      })
      if (inserted) tx.publish({ type: 'mail.queued' })
    },
  }
}
