import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { AttemptResult, DeliveryState, Webhook, WebhookDelivery, WebhookSecret } from './webhook.ts'
import type { WebhookEvent } from './webhook-event.ts'

export interface WebhookStore {
  /** All endpoints except removed ones, oldest first. */
  list(): Promise<Webhook[]>
  find(id: string): Promise<Webhook | null>
  insert(webhook: Webhook): Promise<void>
  /** Returns the changed endpoint, or null if there is no such endpoint. */
  update(
    id: string,
    change: Partial<Pick<Webhook, 'url' | 'events' | 'disabledAt' | 'disabledBy'>>,
  ): Promise<Webhook | null>
  /** Locks the endpoint's row until the transaction ends. Returns null if there is no such endpoint. */
  lock(id: string): Promise<Webhook | null>
  /** Serialises insertions until the transaction ends, so that endpoints can be counted first. */
  lockAll(): Promise<void>
  /**
   * Marks the endpoint as removed, erases its URL and deletes its secrets; `prune` deletes its events later, since
   * there may be many. Returns null if there is no such endpoint.
   */
  remove(id: string, at: Instant): Promise<Webhook | null>
  /** The secrets of these endpoints, oldest first. */
  secrets(webhookIds: readonly string[]): Promise<WebhookSecret[]>
  insertSecret(secret: WebhookSecret): Promise<void>
  /** Returns false if the endpoint has no such secret. */
  removeSecret(webhookId: string, id: string): Promise<boolean>
}

/** A subject's queued events for one endpoint, leased to one node until `leasedUntil`. */
export interface LeasedQueue {
  id: string
  webhookId: string
  leasedUntil: Instant
}

/** The outcome of an attempt: settled, or to be retried. */
export type DeliveryOutcome = AttemptResult & { deliveryId: string } & (
    | { state: Exclude<DeliveryState, 'waiting'> }
    | { state: 'waiting'; nextAttemptAt: Instant }
  )

/**
 * The queues of events, one for each endpoint and subject. One node at a time delivers the events of a queue, in the
 * order of their sequence numbers.
 */
export interface WebhookDeliveryStore {
  /**
   * Leases due queues, at most `capacity` of each endpoint, by one conditional update: no two nodes lease the same
   * queue.
   */
  lease(
    now: Instant,
    leasedUntil: Instant,
    capacities: readonly { webhookId: string; capacity: number }[],
    nodeId: string | null,
  ): Promise<LeasedQueue[]>
  /**
   * Records the outcome of an attempt (null before the first one), extends the lease to `until` and returns the next
   * event of the queue. If no event is due, releases the queue and returns null. Returns `lost`, and writes nothing, if
   * the lease has passed to another node.
   */
  advance(
    lease: Pick<LeasedQueue, 'id' | 'leasedUntil'>,
    outcome: DeliveryOutcome | null,
    until: Instant,
  ): Promise<WebhookDelivery | null | 'lost'>
  /** Releases the lease; the queue is due at once. */
  release(lease: Pick<LeasedQueue, 'id' | 'leasedUntil'>): Promise<void>
  /** The earliest time at which a queue of these endpoints is due, or its lease expires; null if no event is queued. */
  nextDue(webhookIds: readonly string[]): Promise<Instant | null>
  /** Releases the leases of nodes without a heartbeat since this instant. Returns the number of queues. */
  releaseAbandoned(nodesSeenSince: Instant): Promise<number>
  /**
   * Releases this node's leases on all queues except `knownIds`: the node does not know of a lease if the answer to
   * `lease` was lost.
   */
  releaseUnknown(nodeId: string, knownIds: readonly string[]): Promise<number>
  /**
   * Inserts a test event with the next sequence number of its endpoint and subject. Its state is `failed` until
   * `recordTest` stores the result, so that the queue does not deliver it as well.
   */
  insertTest(webhookId: string, id: string, event: WebhookEvent): Promise<WebhookDelivery>
  /** Stores the result of a test event. */
  recordTest(id: string, state: 'delivered' | 'failed', result: AttemptResult): Promise<void>
  find(id: string): Promise<WebhookDelivery | null>
  /** The endpoint's events in this state, or all of them if `state` is null; newest first. */
  list(webhookId: string, state: DeliveryState | null, page: PageRequest): Promise<Slice<WebhookDelivery>>
  /** Queues a settled event again. Returns null if there is no such event, or if it is queued already. */
  requeue(id: string, now: Instant): Promise<WebhookDelivery | null>
  /** Resets the attempts of an endpoint's queued events, so that each gets the full time for retries again. */
  resetAttempts(webhookId: string): Promise<void>
  /** Whether an event was delivered to the endpoint after this instant. */
  hasDeliveredSince(webhookId: string, since: Instant): Promise<boolean>
  /**
   * For each endpoint that has queued events and was not removed: their number, when the oldest of them was written,
   * and how many of the endpoint's events have ever been dropped.
   */
  waiting(): Promise<Map<string, { count: number; oldestAt: Instant; dropped: number }>>
  /**
   * The number of events in the log that were given up, failed test events included, without those of removed
   * endpoints.
   */
  countFailed(): Promise<number>
  /**
   * Drops at most `count` queued events of an endpoint, the oldest agent events first. Drops none if the number
   * of all dropped ones is not `droppedBefore`: then another node has just dropped some. Returns how many it dropped.
   */
  drop(webhookId: string, count: number, droppedBefore: number, at: Instant): Promise<number>
  /**
   * Removes events that were settled before this instant, queues of ended subjects without an event, and rows of
   * removed endpoints, at most `batch` of each kind. Returns the number of removed rows.
   */
  prune(settledBefore: Instant, now: Instant, batch: number): Promise<number>
  /**
   * Removes the oldest settled agent events of each endpoint that has more than `maxLogged` settled events of any type
   * in one state. Returns whether more may remain to be removed.
   */
  pruneSurplus(maxLogged: number, now: Instant): Promise<boolean>
}
