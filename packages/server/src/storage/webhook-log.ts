import { type SqlBool, sql } from 'kysely'
import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import { toSlice } from '../paging.ts'
import type { AttemptResult, WebhookDelivery } from '../webhooks/webhook.ts'
import { DROPPED_FIRST_PREFIX, parseSubject, subjectText } from '../webhooks/webhook-event.ts'
import type { WebhookDeliveryStore } from '../webhooks/webhook-store.ts'
import type { Db } from './engine.ts'
import { newestFirst } from './paging.ts'
import type { WebhookDeliveryRow } from './schema.ts'
import type { Statements } from './statements.ts'
import { toDeliveryRow } from './webhook-queue.ts'

type WebhookLog = Omit<
  WebhookDeliveryStore,
  | 'lease'
  | 'advance'
  | 'release'
  | 'nextDue'
  | 'releaseAbandoned'
  | 'releaseUnknown'
  | 'prune'
  | 'pruneSurplus'
>

/** The log of deliveries and waiting events, as administrators see and change it. */
export function createWebhookLog({ db, atomically }: Pick<Statements, 'db' | 'atomically'>): WebhookLog {
  return {
    insertTest: (webhookId, id, event) =>
      atomically(async tx => {
        const subject = subjectText(event.subject)
        const queue = await tx
          .insertInto('webhook_queues')
          .values({
            id: newId(event.at),
            webhook_id: webhookId,
            subject,
            last_sequence: 1,
            next_attempt_at: null,
            leased_until: null,
            leased_by: null,
            forgotten_after: null,
          })
          .onConflict(conflict =>
            conflict
              .columns(['webhook_id', 'subject'])
              .doUpdateSet({ last_sequence: sql<number>`webhook_queues.last_sequence + 1` }),
          )
          .returning(['id', 'webhook_id', 'subject', 'last_sequence'])
          .executeTakeFirstOrThrow()
        const row: WebhookDeliveryRow = {
          ...toDeliveryRow(queue, queue.last_sequence, event),
          id,
          state: 'failed',
          settled_at: event.at,
        }
        await tx.insertInto('webhook_deliveries').values(row).execute()
        return toDelivery(row)
      }),

    async recordTest(id, state, result) {
      await db
        .updateTable('webhook_deliveries')
        .set({
          ...resultColumns(result),
          state,
          attempts: 1,
          first_attempt_at: result.at,
          settled_at: result.at,
        })
        .where('id', '=', id)
        .execute()
    },

    async find(id) {
      const row = await db
        .selectFrom('webhook_deliveries')
        .selectAll()
        .where('id', '=', id)
        .executeTakeFirst()
      return row ? toDelivery(row) : null
    },

    async list(webhookId, state, { limit, after }) {
      const rows = await db
        .selectFrom('webhook_deliveries')
        .selectAll()
        .where('webhook_id', '=', webhookId)
        .$if(state !== null, query => query.where('state', '=', state!))
        .$call(newestFirst({ limit, after }))
        .execute()
      return toSlice(rows.map(toDelivery), limit, ({ createdAt, id }) => ({ at: createdAt, id }))
    },

    requeue: (id, now) =>
      atomically(async tx => {
        const deliveryRow = await tx
          .selectFrom('webhook_deliveries')
          .select('queue_id')
          .where('id', '=', id)
          .executeTakeFirst()
        if (!deliveryRow) return null
        await tx
          .updateTable('webhook_queues')
          .set({ next_attempt_at: sql<number>`coalesce(next_attempt_at, ${now})` })
          .where('id', '=', deliveryRow.queue_id)
          .execute()
        const row = await tx
          .updateTable('webhook_deliveries')
          .set({ state: 'waiting', attempts: 0, first_attempt_at: null, settled_at: null })
          .where('id', '=', id)
          .where('state', '<>', 'waiting')
          .returningAll()
          .executeTakeFirst()
        return row ? toDelivery(row) : null
      }),

    async resetAttempts(webhookId) {
      await db
        .updateTable('webhook_deliveries')
        .set({ attempts: 0, first_attempt_at: null })
        .where('webhook_id', '=', webhookId)
        .where('state', '=', 'waiting')
        .where('first_attempt_at', 'is not', null)
        .execute()
    },

    async hasDeliveredSince(webhookId, since) {
      const row = await db
        .selectFrom('webhook_deliveries')
        .select('id')
        .where('webhook_id', '=', webhookId)
        .where('state', '=', 'delivered')
        .where('settled_at', '>', since)
        .limit(1)
        .executeTakeFirst()
      return row !== undefined
    },

    async waiting() {
      const rows = await db
        .selectFrom('webhook_deliveries')
        .innerJoin('webhooks', 'webhooks.id', 'webhook_deliveries.webhook_id')
        .select(eb => [
          'webhook_id',
          eb.fn.countAll<number>().as('count'),
          eb.fn.min<Instant>('webhook_deliveries.created_at').as('oldest_at'),
          'webhooks.dropped',
        ])
        .where('state', '=', 'waiting')
        .where('webhooks.removed_at', 'is', null)
        .groupBy(['webhook_id', 'webhooks.dropped'])
        .execute()
      return new Map(
        rows.map(({ webhook_id, count, oldest_at, dropped }) => [
          webhook_id,
          { count, oldestAt: oldest_at, dropped },
        ]),
      )
    },

    async countFailed() {
      const { failed } = await db
        .selectFrom('webhook_deliveries')
        .innerJoin('webhooks', 'webhooks.id', 'webhook_deliveries.webhook_id')
        .select(eb => eb.fn.countAll<number>().as('failed'))
        .where('state', '=', 'failed')
        .where('webhooks.removed_at', 'is', null)
        .executeTakeFirstOrThrow()
      return failed
    },

    drop: (webhookId, count, droppedBefore, at) =>
      atomically(async tx => {
        const drop = (typePattern: string, limit: number) =>
          dropOldest(tx, { webhookId, typePattern, limit, droppedBefore, at })
        const droppedAgentEventCount = await drop(`${DROPPED_FIRST_PREFIX}%`, count)
        const remaining = count - droppedAgentEventCount
        const droppedOtherCount = remaining > 0 ? await drop('%', remaining) : 0
        const droppedCount = droppedAgentEventCount + droppedOtherCount
        await tx
          .updateTable('webhooks')
          .set(eb => ({ dropped: eb('dropped', '+', droppedCount) }))
          .where('id', '=', webhookId)
          .execute()
        return droppedCount
      }),
  }
}

interface DropSelection {
  webhookId: string
  typePattern: string
  limit: number
  droppedBefore: number
  at: Instant
}

async function dropOldest(
  tx: Db,
  { webhookId, typePattern, limit, droppedBefore, at }: DropSelection,
): Promise<number> {
  const oldestIds = tx
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('webhook_id', '=', webhookId)
    .where('state', '=', 'waiting')
    .where(sql<SqlBool>`type like ${typePattern}`)
    .orderBy('created_at')
    .orderBy('sequence')
    .limit(limit)
  const result = await tx
    .updateTable('webhook_deliveries')
    .set({ state: 'dropped', settled_at: at })
    .where('id', 'in', oldestIds)
    .where('state', '=', 'waiting')
    .where(eb =>
      eb.exists(
        eb
          .selectFrom('webhooks')
          .select('id')
          .where('id', '=', webhookId)
          .where('dropped', '=', droppedBefore),
      ),
    )
    .executeTakeFirst()
  return Number(result.numUpdatedRows)
}

export function resultColumns({ at, durationMs, status, error, answer }: AttemptResult) {
  return {
    last_attempt_at: at,
    last_duration_ms: durationMs,
    last_status: status,
    last_error: error,
    last_answer: answer,
  }
}

export function toDelivery(row: WebhookDeliveryRow): WebhookDelivery {
  return {
    id: row.id,
    webhookId: row.webhook_id,
    queueId: row.queue_id,
    subject: parseSubject(row.subject),
    sequence: row.sequence,
    type: row.type,
    data: row.data,
    state: row.state,
    createdAt: row.created_at,
    attempts: row.attempts,
    firstAttemptAt: row.first_attempt_at,
    settledAt: row.settled_at,
    lastAttempt:
      row.last_attempt_at === null
        ? null
        : {
            at: row.last_attempt_at,
            durationMs: row.last_duration_ms ?? 0,
            status: row.last_status,
            error: row.last_error,
            answer: row.last_answer,
          },
  }
}
