import { type ExpressionBuilder, type SqlBool, sql } from 'kysely'
import { type Instant, MINUTE } from '../clock.ts'
import { DELIVERIES_KEPT_FOR, DROPPED_FIRST_PREFIX } from '../webhooks/webhook-event.ts'
import type { Db } from './engine.ts'
import type { Schema } from './schema.ts'
import { countOf, inChunks } from './statements.ts'

/** The minimum time for which a queue is kept after `agent.disconnected`: longer than a connection can be resumed. */
const AGENT_QUEUE_KEPT_FOR = 5 * MINUTE
/**
 * Maximum number of surplus events (`pruneSurplus`) that one statement removes. Large, since finding the newest of them
 * costs as much as removing some thousand rows.
 */
const SURPLUS_BATCH = 5000

/**
 * Prunes at most `batch` events and `batch` queues. Of each removed endpoint it prunes as many more of both, or the
 * endpoint itself if it has none left. Returns the number of removed rows.
 */
export async function pruneWebhooks(
  tx: Db,
  settledBefore: Instant,
  now: Instant,
  batch: number,
): Promise<number> {
  const settledIds = tx
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('settled_at', '<', settledBefore)
    .limit(batch)
  const result = await tx.deleteFrom('webhook_deliveries').where('id', 'in', settledIds).executeTakeFirst()
  return countOf(result) + (await pruneQueues(tx, now, batch)) + (await pruneRemovedEndpoints(tx, batch))
}

/** Removes queues after the time `forgotten_after` (schema.ts), unless the log still has one of their events. */
async function pruneQueues(tx: Db, now: Instant, batch: number): Promise<number> {
  const prunableIds = tx
    .selectFrom('webhook_queues')
    .select('id')
    .where('forgotten_after', '<', now)
    .where('next_attempt_at', 'is', null)
    .where(hasNoEvents)
    .limit(batch)
  // The conditions that a new event changes are repeated: if this statement waited for a transaction that added one,
  // they must be evaluated again.
  const result = await tx
    .deleteFrom('webhook_queues')
    .where('id', 'in', prunableIds)
    .where('forgotten_after', '<', now)
    .where('next_attempt_at', 'is', null)
    .executeTakeFirst()
  return countOf(result)
}

/** Removes rows of removed endpoints, and then the endpoints that have no rows left. */
async function pruneRemovedEndpoints(tx: Db, batch: number): Promise<number> {
  const removedEndpoints = await tx
    .selectFrom('webhooks')
    .select('id')
    .where('removed_at', 'is not', null)
    .execute()
  let removedCount = 0
  for (const { id } of removedEndpoints) {
    const deliveryIds = tx
      .selectFrom('webhook_deliveries')
      .select('id')
      .where('webhook_id', '=', id)
      .limit(batch)
    const deliveryCount = countOf(
      await tx.deleteFrom('webhook_deliveries').where('id', 'in', deliveryIds).executeTakeFirst(),
    )
    const queueIds = tx.selectFrom('webhook_queues').select('id').where('webhook_id', '=', id).limit(batch)
    const queueCount = countOf(
      await tx.deleteFrom('webhook_queues').where('id', 'in', queueIds).executeTakeFirst(),
    )
    removedCount += deliveryCount + queueCount
    if (deliveryCount + queueCount === 0)
      removedCount += countOf(await tx.deleteFrom('webhooks').where('id', '=', id).executeTakeFirst())
  }
  return removedCount
}

/**
 * Removes, for each endpoint and state, the settled `agent.…` events that are older than the newest `maxLogged` events
 * of any type. Without this a single key could fill the log by connecting and disconnecting many times a second.
 * Returns whether more may remain to be removed.
 */
export async function pruneSurplus(tx: Db, maxLogged: number, now: Instant): Promise<boolean> {
  const endpoints = await tx.selectFrom('webhooks').select('id').execute()
  let mayRemain = false
  for (const { id } of endpoints)
    for (const state of ['delivered', 'failed', 'dropped'] as const) {
      const newestSurplus = await tx
        .selectFrom('webhook_deliveries')
        .select('created_at')
        .where('webhook_id', '=', id)
        .where('state', '=', state)
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .offset(maxLogged)
        .limit(1)
        .executeTakeFirst()
      if (!newestSurplus) continue
      const surplusIds = tx
        .selectFrom('webhook_deliveries')
        .select('id')
        .where('webhook_id', '=', id)
        .where('state', '=', state)
        .where('created_at', '<=', newestSurplus.created_at)
        .where(sql<SqlBool>`type like ${`${DROPPED_FIRST_PREFIX}%`}`)
        .limit(SURPLUS_BATCH)
      const removedEvents = await tx
        .deleteFrom('webhook_deliveries')
        .where('id', 'in', surplusIds)
        .returning('queue_id')
        .execute()
      for (const chunk of inChunks([...new Set(removedEvents.map(({ queue_id }) => queue_id))]))
        await pruneEndedQueues(tx, chunk, now)
      mayRemain ||= removedEvents.length === SURPLUS_BATCH
    }
  return mayRemain
}

/**
 * Removes those of the given queues whose connection ended more than AGENT_QUEUE_KEPT_FOR ago, unless the log still has
 * one of their events. The column `forgotten_after` is DELIVERIES_KEPT_FOR after the end of the connection.
 */
async function pruneEndedQueues(tx: Db, queueIds: readonly string[], now: Instant): Promise<void> {
  await tx
    .deleteFrom('webhook_queues')
    .where('id', 'in', [...queueIds])
    .where('forgotten_after', '<', now + DELIVERIES_KEPT_FOR - AGENT_QUEUE_KEPT_FOR)
    .where('next_attempt_at', 'is', null)
    .where(hasNoEvents)
    .execute()
}

/** The condition that the log has no event of the queue. */
function hasNoEvents({ not, exists, selectFrom }: ExpressionBuilder<Schema, 'webhook_queues'>) {
  const events = selectFrom('webhook_deliveries')
    .select('webhook_deliveries.id')
    .whereRef('webhook_deliveries.queue_id', '=', 'webhook_queues.id')
  return not(exists(events))
}
