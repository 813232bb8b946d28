import type { Instant } from '../clock.ts'
import type { Db } from './engine.ts'
import { countOf } from './statements.ts'

/** At most `batch` rows of each kind. Returns how many were removed. */
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

/** Of subjects that are over. What may still be sent again keeps its own. */
async function pruneNumberings(tx: Db, now: Instant, batch: number): Promise<number> {
  const over = tx
    .selectFrom('webhook_queues')
    .select('id')
    .where('forgotten_after', '<', now)
    .where('next_attempt_at', 'is', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('webhook_deliveries')
            .select('webhook_deliveries.id')
            .whereRef('webhook_deliveries.queue_id', '=', 'webhook_queues.id'),
        ),
      ),
    )
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

/** What removed endpoints left, and these when nothing is left. */
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
