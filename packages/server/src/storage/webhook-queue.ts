import { sql } from 'kysely'
import type { Events } from '../events.ts'
import { newId } from '../ids.ts'
import { createAgentEventLimits } from '../webhooks/agent-event-limits.ts'
import {
  queuePrunableAt,
  type SentEventType,
  subjectText,
  type WebhookEvent,
} from '../webhooks/webhook-event.ts'
import type { Db } from './engine.ts'
import type { WebhookDeliveryRow } from './schema.ts'
import { inChunks, toList } from './statements.ts'

/**
 * How long a node caches which endpoints are enabled, to skip events that none of them subscribes to. After this time
 * at the latest a new endpoint receives every event; usually at once, since nodes invalidate each other's caches.
 */
export const SUBSCRIPTIONS_CACHED_FOR_MS = 2000

/** An enabled endpoint, with the types of events that it subscribes to; an empty list means all types. */
interface Subscriber {
  id: string
  events: readonly string[]
}

export interface WebhookQueue {
  /**
   * Writes the events for every enabled endpoint that subscribes to them, in the transaction of `db`, but leaves out
   * events of agents beyond the limits of agent-event-limits.ts. Executes no statement while the cache says that there
   * is no such endpoint. Locks the queues of the subjects, so it must be the last step of the work in the transaction.
   * Returns whether it wrote anything.
   */
  add(db: Db, events: readonly WebhookEvent[]): Promise<boolean>
  /** Invalidates the cache of endpoints after this process changed one, without waiting for the event of the change. */
  invalidateSubscribers(): void
}

/**
 * @param maxConnectionsPerUser the maximum number of hub connections of one user on one node; a multiple of it
 * bounds the user's `agent.connected` and `agent.disconnected` events (`agent-event-limits.ts`)
 */
export function createWebhookQueue(
  events: Events,
  maxConnectionsPerUser: number,
  monotonic = () => performance.now(),
): WebhookQueue {
  const agentEventLimits = createAgentEventLimits(monotonic, maxConnectionsPerUser)
  let cachedSubscribers: readonly Subscriber[] = []
  let readAt = Number.NEGATIVE_INFINITY
  let invalidationCount = 0
  events.subscribe(({ type }) => {
    if (type === 'webhooks.changed' || type === 'events.gap') invalidateSubscribers()
  })

  return {
    invalidateSubscribers,
    async add(db, announced) {
      if (announced.length === 0) return false
      const isCacheFresh = monotonic() - readAt < SUBSCRIPTIONS_CACHED_FOR_MS
      if (
        isCacheFresh &&
        !cachedSubscribers.some(each => announced.some(({ type }) => subscribesTo(each, type)))
      )
        return false
      const allowedEvents = agentEventLimits.withinLimits(announced)
      if (allowedEvents.length === 0) return false
      const subscribers = await readSubscribers(db)
      const newDeliveries = subscribers.flatMap(subscriber =>
        allowedEvents
          .filter(({ type }) => subscribesTo(subscriber, type))
          .map(event => ({ webhookId: subscriber.id, event })),
      )
      if (newDeliveries.length > 0) await writeDeliveries(db, newDeliveries)
      return newDeliveries.length > 0
    },
  }

  function invalidateSubscribers(): void {
    invalidationCount++
    readAt = Number.NEGATIVE_INFINITY
  }

  /** Reads the enabled endpoints, and caches them unless the cache was invalidated meanwhile. */
  async function readSubscribers(db: Db): Promise<readonly Subscriber[]> {
    const [startedAt, invalidationCountBefore] = [monotonic(), invalidationCount]
    const rows = await db
      .selectFrom('webhooks')
      .select(['id', 'events'])
      .where('removed_at', 'is', null)
      .where('disabled_at', 'is', null)
      .execute()
    const subscribers = rows.map(row => ({ id: row.id, events: toList(row.events) }))
    if (invalidationCount === invalidationCountBefore) [cachedSubscribers, readAt] = [subscribers, startedAt]
    return subscribers
  }
}

function subscribesTo({ events }: Subscriber, type: SentEventType): boolean {
  return events.length === 0 || events.includes(type)
}

/** An event to be queued for an endpoint. */
interface NewDelivery {
  webhookId: string
  event: WebhookEvent
}

async function writeDeliveries(db: Db, deliveries: readonly NewDelivery[]): Promise<void> {
  const deliveriesByQueue = new Map<string, NewDelivery[]>()
  for (const each of deliveries) {
    const key = `${each.webhookId} ${subjectText(each.event.subject)}`
    deliveriesByQueue.set(key, [...(deliveriesByQueue.get(key) ?? []), each])
  }
  // Sorted, so that two transactions lock queues in the same order and cannot deadlock.
  const groups = [...deliveriesByQueue].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group)
  for (const chunk of inChunks(groups)) {
    const numberedRows = await assignNumbers(db, chunk)
    for (const rows of inChunks(numberedRows))
      await db.insertInto('webhook_deliveries').values(rows).execute()
  }
}

/** Assigns the next sequence numbers of each subject, whose queue stays locked until the transaction ends. */
async function assignNumbers(db: Db, groups: readonly NewDelivery[][]): Promise<WebhookDeliveryRow[]> {
  const queues = await db
    .insertInto('webhook_queues')
    .values(groups.map(toQueueRow))
    .onConflict(conflict =>
      conflict.columns(['webhook_id', 'subject']).doUpdateSet(eb => ({
        last_sequence: sql<number>`webhook_queues.last_sequence + excluded.last_sequence`,
        next_attempt_at: sql<number>`coalesce(webhook_queues.next_attempt_at, excluded.next_attempt_at)`,
        forgotten_after: eb.ref('excluded.forgotten_after'),
      })),
    )
    .returning(['id', 'webhook_id', 'subject', 'last_sequence'])
    .execute()
  const queuesByKey = new Map(queues.map(queue => [`${queue.webhook_id} ${queue.subject}`, queue]))
  return groups.flatMap(group => {
    const firstDelivery = group[0]!
    const queue = queuesByKey.get(`${firstDelivery.webhookId} ${subjectText(firstDelivery.event.subject)}`)!
    const sequenceBefore = queue.last_sequence - group.length
    return group.map(({ event }, index) => toDeliveryRow(queue, sequenceBefore + index + 1, event))
  })
}

function toQueueRow(group: readonly NewDelivery[]) {
  const { webhookId, event } = group.at(-1)!
  return {
    id: newId(event.at),
    webhook_id: webhookId,
    subject: subjectText(event.subject),
    last_sequence: group.length,
    next_attempt_at: event.at,
    leased_until: null,
    leased_by: null,
    forgotten_after: queuePrunableAt(event.type, event.at),
  }
}

export function toDeliveryRow(
  { id, webhook_id, subject }: { id: string; webhook_id: string; subject: string },
  sequence: number,
  { type, at, data }: WebhookEvent,
): WebhookDeliveryRow {
  return {
    id: newId(at),
    webhook_id,
    queue_id: id,
    subject,
    sequence,
    type,
    data: JSON.stringify(data),
    state: 'waiting',
    created_at: at,
    attempts: 0,
    first_attempt_at: null,
    settled_at: null,
    last_attempt_at: null,
    last_duration_ms: null,
    last_status: null,
    last_error: null,
    last_answer: null,
  }
}
