import { type ActedBy, type Audit, auditedOutcome, withoutChanges } from '../audit/audit.ts'
import type { AuditType } from '../audit/audit-event.ts'
import type { ChangeLimits } from '../change-limits.ts'
import type { Clock, Instant } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { NODE_TIMEOUT_MS, type NodeRow, type PresenceRow } from '../hub/presence-store.ts'
import { newId } from '../ids.ts'
import { maskAddress } from '../log.ts'
import { isPastDeadline, type MessageState, type OutboxMessage } from '../outbox/message.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Suppression } from '../outbox/suppression.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { Storage } from '../store.ts'
import type { EmailAddress } from '../users/email-address.ts'

export interface NodeStatus extends NodeRow {
  connections: number
}

/** What administrators see and do across all people, apart from changes of accounts, keys and apps. */
export interface Administration {
  /** Live connections of all people on all nodes, newest first. */
  agents(page: PageRequest): Promise<Slice<PresenceRow>>
  /** @throws KeywayError `not_found` */
  disconnect(connectionId: string, by: ActedBy): Promise<void>
  /** The running nodes, oldest first. */
  nodes(): Promise<NodeStatus[]>
  mails(state: MessageState | null, page: PageRequest): Promise<Slice<ListedMail>>
  /**
   * The last mails to a person's address; none for an account without an address. The call is audited, since mails show
   * what a person does.
   *
   * @throws KeywayError `rate_limited`
   */
  mailsOf(userId: string, by: ActedBy): Promise<OutboxMessage[]>
  /**
   * @throws KeywayError `not_found`, `mail_not_available` (a sign-in mail, one whose link has expired, or one that is
   *   sent or queued)
   */
  sendAgain(mailId: string, by: ActedBy): Promise<OutboxMessage>
  /** Queues a test mail. */
  testMail(to: EmailAddress, by: ActedBy): Promise<OutboxMessage>
  /** The suppressed addresses that sort after `after`; null: from the first one on. */
  suppressions(after: EmailAddress | null, limit: number): Promise<Suppression[]>
  /** Records a read of a person's data in the audit, then runs it. @throws KeywayError `rate_limited` */
  auditedRead<Value>(userId: string, what: ReadKind, by: ActedBy, read: () => Promise<Value>): Promise<Value>
}

/** A mail with a masked recipient: reading the list of all mails is not audited, but reading one person's mails is. */
export type ListedMail = Omit<OutboxMessage, 'recipient'> & { recipient: string }

export type ReadKind = 'ledger' | 'mails' | 'export'

/** Maximum number of mails that `mailsOf` returns. */
const MAX_MAILS = 50

export function createAdministration({
  storage,
  clock,
  audit,
  changeLimits,
  outbox,
  disconnect,
}: {
  storage: Storage
  clock: Clock
  audit: Audit
  changeLimits: ChangeLimits
  outbox: Outbox
  /** Closes a connection, on whichever node it is. False if there is none. */
  disconnect(userId: string, connectionId: string): Promise<boolean>
}): Administration {
  const { store } = storage
  const seenSince = () => clock.now() - NODE_TIMEOUT_MS

  return {
    auditedRead,
    agents: page => store.presence.list(seenSince(), page),

    async disconnect(connectionId, by) {
      const row = await store.presence.find(connectionId, seenSince())
      if (!row) throw new KeywayError('not_found', 'There is no such connection.')
      await record('agent.disconnected', 'agent', connectionId, row.userId, by)
      await disconnect(row.userId, connectionId)
    },

    async nodes() {
      const [nodes, counts] = await Promise.all([
        store.presence.nodes(seenSince()),
        store.presence.countByNode(),
      ])
      return nodes.map(node => ({ ...node, connections: counts.get(node.id) ?? 0 }))
    },

    async mails(state, page) {
      const slice = await store.outbox.list(state, page)
      const withMaskedRecipient = (mail: OutboxMessage) => ({
        ...mail,
        recipient: maskAddress(mail.recipient),
      })
      return { ...slice, rows: slice.rows.map(withMaskedRecipient) }
    },

    async mailsOf(userId, by) {
      const email = (await store.users.find(userId))?.email
      if (!email) return []
      return auditedRead(userId, 'mails', by, () => store.outbox.recentFor(email, MAX_MAILS))
    },

    async sendAgain(mailId, by) {
      const isQueued = await audit.perform(by, async tx => {
        const mail = await tx.outbox.find(mailId)
        if (!mail || !(await tx.outbox.requeue(mailId, clock.now()))) return withoutChanges(null)
        tx.publish({ type: 'mail.queued' })
        const subject = { type: 'mail' as const, id: mailId, user_id: mail.userId }
        const states = { before: { state: mail.state }, after: { state: 'queued' } }
        return auditedOutcome(true, { type: 'mail.sent_again', subject, ...states })
      })
      const mail = await store.outbox.find(mailId)
      if (!mail) throw new KeywayError('not_found', 'There is no such mail.')
      if (isQueued) return mail
      throw new KeywayError('mail_not_available', whyNotSentAgain(mail, clock.now()))
    },

    async testMail(to, by) {
      const id = newId(clock.now())
      await audit.perform(by, async tx => {
        const now = clock.now()
        await outbox.enqueue(tx, { id, recipient: to, userId: null, content: { kind: 'test' }, now })
        const subject = { type: 'mail' as const, id, user_id: null }
        return auditedOutcome(true, {
          type: 'mail.tested',
          subject,
          before: null,
          after: { state: 'queued' },
        })
      })
      return (await store.outbox.find(id))!
    },

    suppressions: (after, limit) => store.suppressions.list(after, clock.now(), limit),
  }

  async function auditedRead<Value>(
    userId: string,
    what: ReadKind,
    by: ActedBy,
    read: () => Promise<Value>,
  ): Promise<Value> {
    // Limited, since each read adds a row: support staff, who may only read, must not be able to fill the audit.
    changeLimits.count(`reading:${by.actor.id}`)
    await audit.perform(by, async () =>
      auditedOutcome(true, {
        type: 'user.read',
        subject: { type: 'user', id: userId, user_id: userId },
        before: null,
        after: { read: what },
      }),
    )
    return read()
  }

  function record(type: AuditType, kind: 'agent', id: string, userId: string, by: ActedBy): Promise<boolean> {
    return audit.perform(by, async () =>
      auditedOutcome(true, { type, subject: { type: kind, id, user_id: userId }, before: null, after: null }),
    )
  }
}

function whyNotSentAgain(mail: OutboxMessage, now: Instant): string {
  const { kind, state } = mail
  if (kind === 'sign_in') return 'A sign-in mail holds a link that expires: the person asks for a new one.'
  if (state === 'queued') return 'The mail is queued already.'
  if (state !== 'sent' && isPastDeadline(mail, now))
    return kind === 'invitation'
      ? 'The invitation in the mail has expired: invite the address again.'
      : 'The link in the mail has expired: the person asks for a new one.'
  return 'The mail was delivered, and its content erased.'
}
