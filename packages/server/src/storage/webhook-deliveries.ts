import { type ExpressionBuilder, sql } from 'kysely'
import type { Instant } from '../clock.ts'
import type { AttemptResult, WebhookDelivery } from '../webhooks/webhook.ts'
import type { WebhookDeliveryStore } from '../webhooks/webhook-store.ts'
import type { Db } from './engine.ts'
import type { Schema } from './schema.ts'
import type { Statements } from './statements.ts'
import { createWebhookLog, resultColumns, toDelivery } from './webhook-log.ts'
import { pruneSurplus, pruneWebhooks } from './webhook-prune.ts'

export function createWebhookDeliveryStore({ db, atomically }: Statements): WebhookDeliveryStore {
  return {
    async lease(now, leasedUntil, capacities, nodeId) {
      if (capacities.length === 0) return []
      // A nested query for each endpoint, since SQLite applies a limit only to a whole union.
      const dueIds = capacities
        .map(({ webhookId, capacity }) =>
          db.selectFrom(dueQueues(db, webhookId, now, capacity).as('due')).select('due.id'),
        )
        .reduce((all, each) => all.unionAll(each) as typeof all)
      // The conditions are repeated, since PostgreSQL checks them again for a row that another node leased while this
      // statement waited for the row's lock.
      const rows = await db
        .updateTable('webhook_queues')
        .set({ leased_until: leasedUntil, leased_by: nodeId })
        .where('id', 'in', dueIds)
        .where(eb => isDue(eb, now))
        .returning(['id', 'webhook_id'])
        .execute()
      return rows.map(row => ({ id: row.id, webhookId: row.webhook_id, leasedUntil }))
    },

    advance: (lease, outcome, until) =>
      atomically(async tx => {
        // Extends the lease, and locks the queue's row: no event is added to it until this transaction ends.
        if (!(await updateLeased(tx, lease, { leased_until: until }))) return 'lost'
        if (outcome) await recordResult(tx, outcome.deliveryId, outcome)
        if (outcome?.state === 'waiting') {
          await releaseUntil(tx, lease.id, outcome.nextAttemptAt)
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
        if (!row) await releaseUntil(tx, lease.id, null)
        return row ? toDelivery(row) : null
      }),

    async release(lease) {
      await updateLeased(db, lease, { leased_until: null, leased_by: null })
    },

    async nextDue(webhookIds) {
      const earliestLease = await db
        .selectFrom('webhook_queues')
        .select(eb => eb.fn.min<Instant | null>('leased_until').as('due'))
        .where('leased_until', 'is not', null)
        .where('webhook_id', 'in', [...webhookIds, ''])
        .executeTakeFirst()
      const unleasedDueTimes = await Promise.all(webhookIds.map(id => firstUnleasedDue(db, id)))
      const instants = [earliestLease?.due ?? null, ...unleasedDueTimes].filter(at => at !== null)
      return instants.length === 0 ? null : Math.min(...instants)
    },

    async releaseAbandoned(nodesSeenSince) {
      const liveNodes = db.selectFrom('nodes').select('id').where('seen_at', '>=', nodesSeenSince)
      const result = await db
        .updateTable('webhook_queues')
        .set({ leased_until: null, leased_by: null })
        .where('leased_until', 'is not', null)
        .where('leased_by', 'not in', liveNodes)
        .executeTakeFirst()
      return Number(result.numUpdatedRows)
    },

    async releaseUnknown(nodeId, knownIds) {
      const result = await db
        .updateTable('webhook_queues')
        .set({ leased_until: null, leased_by: null })
        .where('leased_until', 'is not', null)
        .where('leased_by', '=', nodeId)
        .$if(knownIds.length > 0, query => query.where('id', 'not in', [...knownIds]))
        .executeTakeFirst()
      return Number(result.numUpdatedRows)
    },

    ...createWebhookLog({ db, atomically }),

    prune: (settledBefore, now, batch) => atomically(tx => pruneWebhooks(tx, settledBefore, now, batch)),
    pruneSurplus: (maxLogged, now) => atomically(tx => pruneSurplus(tx, maxLogged, now)),
  }
}

function dueQueues(db: Db, webhookId: string, now: Instant, limit: number) {
  return db
    .selectFrom('webhook_queues')
    .select('id')
    .where('webhook_id', '=', webhookId)
    .where(eb => isDue(eb, now))
    .orderBy('next_attempt_at')
    .orderBy('id')
    .limit(limit)
}

/** When the first of an endpoint's queues that are not leased is due; null if no such queue has an event. */
async function firstUnleasedDue(db: Db, webhookId: string): Promise<Instant | null> {
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

/** Updates a queue while it has this lease; false if the lease was lost. */
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

/** Releases the lease. The queue is next due at `nextAttemptAt`, which is null if no event is queued. */
async function releaseUntil(tx: Db, id: string, nextAttemptAt: Instant | null): Promise<void> {
  await tx
    .updateTable('webhook_queues')
    .set({ next_attempt_at: nextAttemptAt, leased_until: null, leased_by: null })
    .where('id', '=', id)
    .execute()
}

/** Records the result of an attempt, unless the event was dropped meanwhile. */
async function recordResult(
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
