import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { AttemptResult, DeliveryState, Webhook, WebhookDelivery, WebhookSecret } from './webhook.ts'
import type { WebhookEvent } from './webhook-event.ts'

export interface WebhookStore {
  /** Oldest first, without removed endpoints. */
  list(): Promise<Webhook[]>
  find(id: string): Promise<Webhook | null>
  insert(webhook: Webhook): Promise<void>
  /** Null if there is none. */
  update(
    id: string,
    change: Partial<Pick<Webhook, 'url' | 'events' | 'disabledAt' | 'disabledBy'>>,
  ): Promise<Webhook | null>
  /** Locks the row until the transaction ends; null if there is none. */
  lock(id: string): Promise<Webhook | null>
  /** Serialises insertions until the transaction ends, so that endpoints can be counted first. */
  lockAll(): Promise<void>
  /** Removes its secrets at once, and its deliveries later. Null if there is none. */
  remove(id: string, at: Instant): Promise<Webhook | null>
  /** Oldest first. */
  secrets(webhookIds: readonly string[]): Promise<WebhookSecret[]>
  insertSecret(secret: WebhookSecret): Promise<void>
  removeSecret(webhookId: string, id: string): Promise<boolean>
}

/** A subject's queued events for one endpoint, leased to one node until `leasedUntil`. */
export interface LeasedQueue {
  /** The id of the queue. */
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
   * Leases queues that are due, at most `room` of each endpoint, by one conditional update: no two nodes get the same.
   */
  lease(
    now: Instant,
    leasedUntil: Instant,
    rooms: readonly { webhookId: string; room: number }[],
    nodeId: string | null,
  ): Promise<LeasedQueue[]>
  /**
   * Records an outcome and returns the next event of the queue, whose lease is extended to `until`; or releases the
   * queue and returns null if it has no due event. `lost`, and nothing written, if another node has the lease.
   */
  advance(
    lease: Pick<LeasedQueue, 'id' | 'leasedUntil'>,
    outcome: DeliveryOutcome | null,
    until: Instant,
  ): Promise<WebhookDelivery | null | 'lost'>
  /** Releases the lease; the queue is due at once. */
  release(lease: Pick<LeasedQueue, 'id' | 'leasedUntil'>): Promise<void>
  /** When the next queue of these endpoints is due (leases included), or null. */
  nextDue(webhookIds: readonly string[]): Promise<Instant | null>
  /** Releases the leases of nodes that were not seen since. Returns how many queues. */
  releaseAbandoned(nodesSeenSince: Instant): Promise<number>
  /** Releases this node's leases on all but the known queues: the answer to the statement that leased them was lost. */
  releaseUnknown(nodeId: string, knownIds: readonly string[]): Promise<number>
  /** Numbers an event for one endpoint and stores it as failed, not to be delivered by the queue. */
  insertTest(webhookId: string, id: string, event: WebhookEvent): Promise<WebhookDelivery>
  /** Stores the result of a test event. */
  recordTest(id: string, state: 'delivered' | 'failed', result: AttemptResult): Promise<void>
  find(id: string): Promise<WebhookDelivery | null>
  /** Newest first. */
  list(webhookId: string, state: DeliveryState | null, page: PageRequest): Promise<Slice<WebhookDelivery>>
  /** Queues a settled event again. Null if there is no such event, or it is queued already. */
  requeue(id: string, now: Instant): Promise<WebhookDelivery | null>
  /** Resets the attempts of an endpoint's queued events, so that each may be retried for the whole time again. */
  beginAnew(webhookId: string): Promise<void>
  /** Whether an event was delivered to the endpoint after this instant. */
  hasDeliveredSince(webhookId: string, since: Instant): Promise<boolean>
  /** The number of queued events of each endpoint that has some, and when the oldest was written. */
  waiting(): Promise<Map<string, { count: number; oldestAt: Instant }>>
  /** The number of events in the log that were given up. */
  countFailed(): Promise<number>
  /** Drops at most `count` queued events of an endpoint, the oldest agent events first. Returns how many. */
  drop(webhookId: string, count: number, at: Instant): Promise<number>
  /**
   * Removes events that were settled before this instant, queues that are no longer needed, and rows of removed
   * endpoints.
   */
  prune(settledBefore: Instant, now: Instant, batch: number): Promise<number>
  /**
   * Removes the oldest settled agent events while an endpoint has more than `most` settled events of one state, of any
   * type. Returns whether there may be more.
   */
  pruneSurplus(most: number, now: Instant): Promise<boolean>
}
