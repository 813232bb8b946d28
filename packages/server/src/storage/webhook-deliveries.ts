import { type ExpressionBuilder, sql } from 'kysely'
import type { Instant } from '../clock.ts'
import type { AttemptResult, WebhookDelivery } from '../webhooks/webhook.ts'
import type { WebhookDeliveryStore } from '../webhooks/webhook-store.ts'
import type { Db } from './engine.ts'
import type { Schema } from './schema.ts'
import type { Statements } from './statements.ts'
import { createWebhookLog, fromRow, resultColumns } from './webhook-log.ts'
import { pruneSurplus, pruneWebhooks } from './webhook-prune.ts'

export function createWebhookDeliveryStore({ db, atomically }: Statements): WebhookDeliveryStore {
  return {
    async lease(now, leasedUntil, rooms, nodeId) {
      if (rooms.length === 0) return []
      // A nested query, since SQLite applies a limit only to a whole union.
      const due = rooms
        .map(({ webhookId, room }) =>
          db.selectFrom(dueOf(db, webhookId, now, room).as('due')).select('due.id'),
        )
        .reduce((all, each) => all.unionAll(each) as typeof all)
      // The conditions are repeated: if this statement waited for another node's lease, they must be evaluated again.
      const rows = await db
        .updateTable('webhook_queues')
        .set({ leased_until: leasedUntil, leased_by: nodeId })
        .where('id', 'in', due)
        .where(eb => isDue(eb, now))
        .returning(['id', 'webhook_id'])
        .execute()
      return rows.map(row => ({ id: row.id, webhookId: row.webhook_id, leasedUntil }))
    },

    advance: (lease, outcome, until) =>
      atomically(async tx => {
        // Locks the queue: no event is added to it until the end of this transaction.
        if (!(await updateLeased(tx, lease, { leased_until: until }))) return 'lost'
        if (outcome) await record(tx, outcome.deliveryId, outcome)
        if (outcome?.state === 'waiting') {
          await free(tx, lease.id, { next_attempt_at: outcome.nextAttemptAt })
          return null
        }
        const row = await tx
          .selectFrom('webhook_deliveries')
          .selectAll()
          .where('queue_id', '=', lease.id)
          .where('state', '=', 'waiting')
          .orderBy('sequence')
          .limit(1)
          .executeTakeFirst()
        if (!row) await free(tx, lease.id, { next_attempt_at: null })
        return row ? fromRow(row) : null
      }),

    async release(lease) {
      await updateLeased(db, lease, { leased_until: null, leased_by: null })
    },

    async nextDue(webhookIds) {
      const held = await db
        .selectFrom('webhook_queues')
        .select(eb => eb.fn.min<Instant | null>('leased_until').as('due'))
        .where('leased_until', 'is not', null)
        .where('webhook_id', 'in', [...webhookIds, ''])
        .executeTakeFirst()
      const free = await Promise.all(webhookIds.map(id => firstFree(db, id)))
      const due = [held?.due ?? null, ...free].filter(at => at !== null)
      return due.length === 0 ? null : Math.min(...due)
    },

    async releaseAbandoned(nodesSeenSince) {
      const alive = db.selectFrom('nodes').select('id').where('seen_at', '>=', nodesSeenSince)
      const released = await db
        .updateTable('webhook_queues')
        .set({ leased_until: null, leased_by: null })
        .where('leased_until', 'is not', null)
        .where('leased_by', 'not in', alive)
        .executeTakeFirst()
      return Number(released.numUpdatedRows)
    },

    async releaseUnknown(nodeId, knownIds) {
      const released = await db
        .updateTable('webhook_queues')
        .set({ leased_until: null, leased_by: null })
        .where('leased_until', 'is not', null)
        .where('leased_by', '=', nodeId)
        .$if(knownIds.length > 0, query => query.where('id', 'not in', [...knownIds]))
        .executeTakeFirst()
      return Number(released.numUpdatedRows)
    },

    ...createWebhookLog({ db, atomically }),

    prune: (settledBefore, now, batch) => atomically(tx => pruneWebhooks(tx, settledBefore, now, batch)),
    pruneSurplus: (most, now) => atomically(tx => pruneSurplus(tx, most, now)),
  }
}

function dueOf(db: Db, webhookId: string, now: Instant, room: number) {
  return db
    .selectFrom('webhook_queues')
    .select('id')
    .where('webhook_id', '=', webhookId)
    .where(eb => isDue(eb, now))
    .orderBy('next_attempt_at')
    .orderBy('id')
    .limit(room)
}

/** When the next queue of an endpoint is due that no node has leased. */
async function firstFree(db: Db, webhookId: string): Promise<Instant | null> {
  const row = await db
    .selectFrom('webhook_queues')
    .select('next_attempt_at')
    .where('webhook_id', '=', webhookId)
    .where('next_attempt_at', 'is not', null)
    .where('leased_until', 'is', null)
    .orderBy('next_attempt_at')
    .limit(1)
    .executeTakeFirst()
  return row?.next_attempt_at ?? null
}

function isDue(eb: ExpressionBuilder<Schema, 'webhook_queues'>, now: Instant) {
  return eb.and([
    eb('next_attempt_at', '<=', now),
    eb.or([eb('leased_until', 'is', null), eb('leased_until', '<=', now)]),
  ])
}

async function updateLeased(
  db: Db,
  { id, leasedUntil }: { id: string; leasedUntil: Instant },
  set: { leased_until: Instant | null; leased_by?: null },
): Promise<boolean> {
  const row = await db
    .updateTable('webhook_queues')
    .set(set)
    .where('id', '=', id)
    .where('leased_until', '=', leasedUntil)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

async function free(tx: Db, id: string, set: { next_attempt_at: Instant | null }): Promise<void> {
  await tx
    .updateTable('webhook_queues')
    .set({ ...set, leased_until: null, leased_by: null })
    .where('id', '=', id)
    .execute()
}

/** Not for a delivery that was dropped meanwhile. */
async function record(
  tx: Db,
  id: string,
  { state, ...result }: AttemptResult & { state: WebhookDelivery['state'] },
): Promise<void> {
  await tx
    .updateTable('webhook_deliveries')
    .set(eb => ({
      ...resultColumns(result),
      state,
      attempts: eb('attempts', '+', 1),
      first_attempt_at: sql<number>`coalesce(first_attempt_at, ${result.at})`,
      settled_at: state === 'waiting' ? null : result.at,
    }))
    .where('id', '=', id)
    .where('state', '=', 'waiting')
    .execute()
}
