import { type ExpressionBuilder, type SqlBool, sql } from 'kysely'
import { type Instant, MINUTE } from '../clock.ts'
import { DELIVERIES_KEPT_FOR, DROPPED_FIRST } from '../webhooks/webhook-event.ts'
import type { Db } from './engine.ts'
import type { Schema } from './schema.ts'
import { countOf, inChunks } from './statements.ts'

/** An agent's connection can no longer be resumed after this time, so its subject has no further events. */
const AGENT_ENDED_AFTER = 5 * MINUTE
/**
 * Maximum number of rows of one endpoint that a round removes. Finding where the surplus begins costs as much as
 * removing some thousand rows.
 */
const SURPLUS_BATCH = 5000

/** Prunes at most `batch` rows of each kind. Returns how many were removed. */
export async function pruneWebhooks(
  tx: Db,
  settledBefore: Instant,
  now: Instant,
  batch: number,
): Promise<number> {
  const settled = tx
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('settled_at', '<', settledBefore)
    .limit(batch)
  const old = await tx.deleteFrom('webhook_deliveries').where('id', 'in', settled).executeTakeFirst()
  return countOf(old) + (await pruneNumberings(tx, now, batch)) + (await pruneRemoved(tx, batch))
}

/** Removes queues of subjects without further events, unless one of their events may be sent again. */
async function pruneNumberings(tx: Db, now: Instant, batch: number): Promise<number> {
  const over = tx
    .selectFrom('webhook_queues')
    .select('id')
    .where('forgotten_after', '<', now)
    .where('next_attempt_at', 'is', null)
    .where(hasNoEvents)
    .limit(batch)
  // Repeated: if this statement waited for a transaction that added an event, it must be evaluated again.
  const forgotten = await tx
    .deleteFrom('webhook_queues')
    .where('id', 'in', over)
    .where('forgotten_after', '<', now)
    .where('next_attempt_at', 'is', null)
    .executeTakeFirst()
  return countOf(forgotten)
}

/** Removes rows of removed endpoints, and then the endpoints that have no rows left. */
async function pruneRemoved(tx: Db, batch: number): Promise<number> {
  const removed = await tx.selectFrom('webhooks').select('id').where('removed_at', 'is not', null).execute()
  let count = 0
  for (const { id } of removed) {
    const some = tx.selectFrom('webhook_deliveries').select('id').where('webhook_id', '=', id).limit(batch)
    const deliveries = countOf(
      await tx.deleteFrom('webhook_deliveries').where('id', 'in', some).executeTakeFirst(),
    )
    const queued = tx.selectFrom('webhook_queues').select('id').where('webhook_id', '=', id).limit(batch)
    const queues = countOf(await tx.deleteFrom('webhook_queues').where('id', 'in', queued).executeTakeFirst())
    count += deliveries + queues
    if (deliveries + queues === 0)
      count += countOf(await tx.deleteFrom('webhooks').where('id', '=', id).executeTakeFirst())
  }
  return count
}

/**
 * Removes the oldest settled events of agents beyond the newest `most` of any kind, for each endpoint and state.
 * Without this a single key could fill the log by connecting and disconnecting many times a second. Returns whether
 * there may be more.
 */
export async function pruneSurplus(tx: Db, most: number, now: Instant): Promise<boolean> {
  const endpoints = await tx.selectFrom('webhooks').select('id').execute()
  let isMore = false
  for (const { id } of endpoints)
    for (const state of ['delivered', 'failed', 'dropped'] as const) {
      const newest = await tx
        .selectFrom('webhook_deliveries')
        .select('created_at')
        .where('webhook_id', '=', id)
        .where('state', '=', state)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .offset(most)
        .limit(1)
        .executeTakeFirst()
      if (!newest) continue
      const surplus = tx
        .selectFrom('webhook_deliveries')
        .select('id')
        .where('webhook_id', '=', id)
        .where('state', '=', state)
        .where('created_at', '<=', newest.created_at)
        .where(sql<SqlBool>`type like ${`${DROPPED_FIRST}%`}`)
        .limit(SURPLUS_BATCH)
      const removed = await tx
        .deleteFrom('webhook_deliveries')
        .where('id', 'in', surplus)
        .returning('queue_id')
        .execute()
      for (const some of inChunks([...new Set(removed.map(({ queue_id }) => queue_id))]))
        await pruneEnded(tx, some, now)
      isMore ||= removed.length === SURPLUS_BATCH
    }
  return isMore
}

/** Removes queues whose subjects have no further events and none in the log. */
async function pruneEnded(tx: Db, queueIds: readonly string[], now: Instant): Promise<void> {
  await tx
    .deleteFrom('webhook_queues')
    .where('id', 'in', [...queueIds])
    .where('forgotten_after', '<', now + DELIVERIES_KEPT_FOR - AGENT_ENDED_AFTER)
    .where('next_attempt_at', 'is', null)
    .where(hasNoEvents)
    .execute()
}

/** Whether the log has no event of the queue. */
function hasNoEvents({ not, exists, selectFrom }: ExpressionBuilder<Schema, 'webhook_queues'>) {
  const events = selectFrom('webhook_deliveries')
    .select('webhook_deliveries.id')
    .whereRef('webhook_deliveries.queue_id', '=', 'webhook_queues.id')
  return not(exists(events))
}
