import { sql, type UpdateObject } from 'kysely'
import type { Instant } from '../clock.ts'
import type { MessageState, OutboxMessage } from '../outbox/message.ts'
import type { OutboxStore } from '../outbox/outbox-store.ts'
import { toSlice } from '../paging.ts'
import { newestFirst } from './paging.ts'
import type { MessageRow, Schema } from './schema.ts'
import { countOf, type Statements } from './statements.ts'

const STATES: readonly MessageState[] = ['queued', 'sent', 'failed', 'expired']

/** Selects a part of the due messages, in the order in which they are leased. */
interface DueSelection {
  /** The index to use; empty if the planner chooses the right one. */
  index: string
  condition: string
  order: string
}
const WITH_EXPIRY: DueSelection = {
  index: 'expiring_messages',
  condition: 'send_before is not null',
  order: 'send_before',
}
const WITHOUT_EXPIRY: DueSelection = { index: '', condition: 'send_before is null', order: 'next_attempt_at' }

export function createOutboxStore({ db, indexedBy }: Statements): OutboxStore {
  return {
    async insert(message) {
      const insertedRow = await db
        .insertInto('messages')
        .values(toRow(message))
        .onConflict(conflict => conflict.column('id').doNothing())
        .returning('id')
        .executeTakeFirst()
      return insertedRow !== undefined
    },
    async lease(now, leasedUntil, limit, nodeId = null) {
      const lease = { now, leasedUntil, nodeId }
      const expiringMessages = await leaseSelected(WITH_EXPIRY, limit, lease)
      const capacity = limit - expiringMessages.length
      return capacity === 0
        ? expiringMessages
        : [...expiringMessages, ...(await leaseSelected(WITHOUT_EXPIRY, capacity, lease))]
    },
    settle: (id, leasedUntil, { state, at, error }) =>
      updateLeased(id, leasedUntil, {
        state,
        settled_at: at,
        last_error: error,
        // The content of a failed or expired mail is kept, so that the mail can be queued again; not that of a sign-in
        // mail, which has secrets.
        sealed_content:
          state === 'sent'
            ? null
            : sql<string | null>`case when kind = 'sign_in' then null else sealed_content end`,
      }),
    retryLater: (id, leasedUntil, nextAttemptAt, error) =>
      updateLeased(id, leasedUntil, { next_attempt_at: nextAttemptAt, last_error: error }),
    async releaseAbandoned(nodesSeenSince) {
      const liveNodes = db.selectFrom('nodes').select('id').where('seen_at', '>=', nodesSeenSince)
      const result = await db
        .updateTable('messages')
        .set({ leased_until: null, leased_by: null })
        .where('state', '=', 'queued')
        .where('leased_until', 'is not', null)
        .where('leased_by', 'is not', null)
        .where('leased_by', 'not in', liveNodes)
        .executeTakeFirst()
      return Number(result.numUpdatedRows)
    },
    async releaseUnknown(nodeId, knownIds) {
      const result = await db
        .updateTable('messages')
        .set({ leased_until: null, leased_by: null })
        .where('state', '=', 'queued')
        .where('leased_by', '=', nodeId)
        .$if(knownIds.length > 0, query => query.where('id', 'not in', [...knownIds]))
        .executeTakeFirst()
      return Number(result.numUpdatedRows)
    },
    async nextDue() {
      const row = await db
        .selectFrom('messages')
        .select(eb =>
          eb.fn
            .min<Instant | null>(
              eb
                .case()
                .when('leased_until', '>', eb.ref('next_attempt_at'))
                .then(eb.ref('leased_until'))
                .else(eb.ref('next_attempt_at'))
                .end(),
            )
            .as('due'),
        )
        .where('state', '=', 'queued')
        .executeTakeFirst()
      return row?.due ?? null
    },
    async recentFor(recipient, limit) {
      const rows = await db
        .selectFrom('messages')
        .selectAll()
        .where('recipient', '=', recipient)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
        .execute()
      return rows.map(toMessage)
    },
    async list(state, { limit, after }) {
      const rowsOfStates = await Promise.all(
        (state === null ? STATES : [state]).map(each =>
          db
            .selectFrom('messages')
            .selectAll()
            .where('state', '=', each)
            .$call(newestFirst({ limit, after }))
            .execute(),
        ),
      )
      const newestRows = rowsOfStates
        .flat()
        .sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? 1 : -1))
      return toSlice(newestRows.slice(0, limit + 1).map(toMessage), limit, ({ createdAt, id }) => ({
        at: createdAt,
        id,
      }))
    },
    async find(id) {
      const row = await db.selectFrom('messages').selectAll().where('id', '=', id).executeTakeFirst()
      return row ? toMessage(row) : null
    },
    async requeue(id, now) {
      const row = await db
        .updateTable('messages')
        .set({ state: 'queued', next_attempt_at: now, settled_at: null, attempts: 0, created_at: now })
        .where('id', '=', id)
        .where('state', 'in', ['failed', 'expired'])
        .where('kind', '<>', 'sign_in')
        .where('sealed_content', 'is not', null)
        .where(eb => eb.or([eb('send_before', 'is', null), eb('send_before', '>=', now)]))
        .returning('id')
        .executeTakeFirst()
      return row !== undefined
    },
    async countNotices(userId, kind, since, atMost) {
      const rows = await db
        .selectFrom('messages')
        .select('id')
        .where('user_id', '=', userId)
        .where('kind', '=', kind)
        .where('created_at', '>', since)
        .limit(atMost)
        .execute()
      return rows.length
    },
    async depth(now) {
      const row = await db
        .selectFrom('messages')
        .select(eb => [
          eb.fn.countAll<number>().as('queued'),
          eb.fn
            .min<Instant | null>('created_at')
            .filterWhere(message =>
              message.or([message('next_attempt_at', '<=', now), message('attempts', '>', 0)]),
            )
            .as('oldest'),
        ])
        .where('state', '=', 'queued')
        .executeTakeFirstOrThrow()
      return { queued: row.queued, oldestDueAt: row.oldest }
    },
    async forgetRecipient(recipient) {
      await db.deleteFrom('messages').where('recipient', '=', recipient).execute()
    },
    async forgetUser(userId) {
      await db.deleteFrom('messages').where('user_id', '=', userId).execute()
    },
    async prune(settledBefore, batch) {
      const prunableIds = db
        .selectFrom('messages')
        .select('id')
        .where('settled_at', '<', settledBefore)
        .limit(batch)
      return countOf(await db.deleteFrom('messages').where('id', 'in', prunableIds).executeTakeFirst())
    },
  }

  async function leaseSelected(
    { index, condition, order }: DueSelection,
    limit: number,
    { now, leasedUntil, nodeId }: { now: Instant; leasedUntil: Instant; nodeId: string | null },
  ): Promise<OutboxMessage[]> {
    const dueIds = sql<string>`(select id from messages ${sql.raw(index && indexedBy(index))}
      where state = 'queued' and ${sql.raw(condition)} and next_attempt_at <= ${now}
      and (leased_until is null or leased_until <= ${now}) order by ${sql.raw(order)}, id limit ${limit})`
    // The conditions are repeated: if this statement waited for another node's lease, they must be evaluated again.
    const rows = await db
      .updateTable('messages')
      .set(eb => ({ leased_until: leasedUntil, leased_by: nodeId, attempts: eb('attempts', '+', 1) }))
      .where('id', 'in', dueIds)
      .where('state', '=', 'queued')
      .where('next_attempt_at', '<=', now)
      .where(eb => eb.or([eb('leased_until', 'is', null), eb('leased_until', '<=', now)]))
      .returningAll()
      .execute()
    return rows.map(toMessage)
  }

  /** Updates a queued message and releases its lease; false if the lease was lost or the message is not queued. */
  async function updateLeased(
    id: string,
    leasedUntil: Instant,
    change: UpdateObject<Schema, 'messages'>,
  ): Promise<boolean> {
    const row = await db
      .updateTable('messages')
      .set({ ...change, leased_until: null })
      .where('id', '=', id)
      .where('state', '=', 'queued')
      .where('leased_until', '=', leasedUntil)
      .returning('id')
      .executeTakeFirst()
    return row !== undefined
  }
}

function toRow(message: OutboxMessage): MessageRow {
  return {
    id: message.id,
    kind: message.kind,
    recipient: message.recipient,
    user_id: message.userId,
    sealed_content: message.sealedContent,
    state: message.state,
    attempts: message.attempts,
    created_at: message.createdAt,
    next_attempt_at: message.nextAttemptAt,
    send_before: message.sendBefore,
    leased_until: message.leasedUntil,
    leased_by: null,
    settled_at: message.settledAt,
    last_error: message.lastError,
  }
}

function toMessage(row: MessageRow): OutboxMessage {
  return {
    id: row.id,
    kind: row.kind,
    recipient: row.recipient,
    userId: row.user_id,
    sealedContent: row.sealed_content,
    state: row.state,
    attempts: row.attempts,
    createdAt: row.created_at,
    nextAttemptAt: row.next_attempt_at,
    sendBefore: row.send_before,
    leasedUntil: row.leased_until,
    settledAt: row.settled_at,
    lastError: row.last_error,
  }
}
