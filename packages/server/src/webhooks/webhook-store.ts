import type { Instant } from '../clock.ts'
import type { PageRequest, Slice } from '../paging.ts'
import type { AttemptResult, DeliveryState, Webhook, WebhookDelivery, WebhookSecret } from './webhook.ts'
import type { WebhookEvent } from './webhook-event.ts'

export interface WebhookStore {
  /** Oldest first. Without removed ones. */
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
  /** Locks what new endpoints are counted under until the transaction ends. */
  lockAll(): Promise<void>
  /** Removes its secrets at once, and its deliveries later. Null if there is none. */
  remove(id: string, at: Instant): Promise<Webhook | null>
  /** Oldest first. */
  secrets(webhookIds: readonly string[]): Promise<WebhookSecret[]>
  insertSecret(secret: WebhookSecret): Promise<void>
  removeSecret(webhookId: string, id: string): Promise<boolean>
}

/** A subject's waiting events for one endpoint, held by one node until `leasedUntil`. */
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
 * The queues of events, one for each endpoint and subject. The events of one are delivered by one node at a time, in the
 * order of their numbers.
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
   * Records an outcome and returns the next event of the queue, leased until `until`; null where there is none now, and
   * the queue is released. `lost`, and nothing written, if another node has it.
   */
  advance(
    lease: Pick<LeasedQueue, 'id' | 'leasedUntil'>,
    outcome: DeliveryOutcome | null,
    until: Instant,
  ): Promise<WebhookDelivery | null | 'lost'>
  /** Gives the queue back, due at once. */
  release(lease: Pick<LeasedQueue, 'id' | 'leasedUntil'>): Promise<void>
  /** When the next queue of these endpoints is due (leases included), or null. */
  nextDue(webhookIds: readonly string[]): Promise<Instant | null>
  /** Releases the leases of nodes that were not seen since. Returns how many queues. */
  releaseAbandoned(nodesSeenSince: Instant): Promise<number>
  /** Releases leases of this node that it does not know of, since the answer to a lease was lost. */
  releaseUnknown(nodeId: string, knownIds: readonly string[]): Promise<number>
  /** Numbers an event for one endpoint and stores it as failed, not to be delivered by the queue. */
  insertTest(webhookId: string, id: string, event: WebhookEvent): Promise<WebhookDelivery>
  /** Stores the result of such an event. */
  recordTest(id: string, state: 'delivered' | 'failed', result: AttemptResult): Promise<void>
  find(id: string): Promise<WebhookDelivery | null>
  /** Newest first. */
  list(webhookId: string, state: DeliveryState | null, page: PageRequest): Promise<Slice<WebhookDelivery>>
  /** Queues a settled event again. Null if there is none or it waits already. */
  requeue(id: string, now: Instant): Promise<WebhookDelivery | null>
  /** Forgets the attempts of what waits for an endpoint, so that it has the whole time again. */
  beginAnew(webhookId: string): Promise<void>
  /** Whether one was delivered to the endpoint after this. */
  hasDeliveredSince(webhookId: string, since: Instant): Promise<boolean>
  /** The number of waiting events of each endpoint that has some, and when the oldest was written. */
  waiting(): Promise<Map<string, { count: number; oldestAt: Instant }>>
  /** The number of events in the log that were given up. */
  countFailed(): Promise<number>
  /** Drops at most `count` waiting events of an endpoint, the oldest of agents first. Returns how many. */
  drop(webhookId: string, count: number, at: Instant): Promise<number>
  /** Removes what was settled before this, numberings that may be forgotten, and what removed endpoints left. */
  prune(settledBefore: Instant, now: Instant, batch: number): Promise<number>
  /**
   * Removes the oldest settled events of agents beyond the newest `most` of any kind, for each endpoint and state. Returns
   * whether there may be more.
   */
  pruneSurplus(most: number, now: Instant): Promise<boolean>
}
