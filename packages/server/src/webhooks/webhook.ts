import { DAY, type Instant, SECOND } from '../clock.ts'
import type { SentEventType, WebhookEventType, WebhookSubject } from './webhook-event.ts'

/** Maximum number of endpoints: each event is written once for every endpoint that subscribes to it. */
export const MAX_WEBHOOKS = 20
/** Maximum number of secrets of an endpoint; each body is signed with all of them. */
export const MAX_SECRETS = 5
export const MAX_URL_LENGTH = 2048
/** Maximum number of queued events of one endpoint; beyond it the oldest are dropped, agent events first. */
export const MAX_WAITING = 100_000
/**
 * Maximum number of settled events (delivered, failed or dropped) of one state in the log of one endpoint; beyond it
 * the oldest agent events are removed.
 */
export const MAX_LOGGED = 200_000
/** An event that failed for this long is given up. */
export const GIVE_UP_AFTER = 3 * DAY
/** How long a queue is leased to a node for one attempt and for recording its outcome; then another node may try. */
export const LEASE = 30 * SECOND
/** Maximum number of bytes of a response that the log keeps. */
export const MAX_LOGGED_ANSWER_BYTES = 1024

export interface Webhook {
  id: string
  url: string
  /** Types of events that the endpoint subscribes to; an empty list means all types. */
  events: WebhookEventType[]
  createdAt: Instant
  /** Null while the endpoint is enabled. */
  disabledAt: Instant | null
  disabledBy: 'person' | 'failures' | null
  /** Number of events that were dropped because too many were queued. */
  dropped: number
}

export interface WebhookSecret {
  id: string
  webhookId: string
  /** Sealed with the purpose `webhook-secret` and the id as context. */
  sealedSecret: string
  createdAt: Instant
}

/** `failed`: given up. `dropped`: not sent, since too many events were queued. */
export type DeliveryState = 'waiting' | 'delivered' | 'failed' | 'dropped'

/** One event for one endpoint. Its id is the `webhook-id`, the same on every attempt. */
export interface WebhookDelivery {
  id: string
  webhookId: string
  queueId: string
  subject: WebhookSubject
  /** The number of the event among those of its endpoint and subject: 1, 2, 3 … */
  sequence: number
  type: SentEventType
  /** The event's data as JSON. */
  data: string
  state: DeliveryState
  createdAt: Instant
  /** Number of attempts since the event was queued, or queued again. */
  attempts: number
  firstAttemptAt: Instant | null
  /** When the event was delivered, given up or dropped; null while it is queued. */
  settledAt: Instant | null
  lastAttempt: AttemptResult | null
}

export interface AttemptResult {
  at: Instant
  durationMs: number
  /** The response's HTTP status; null if there was no response. */
  status: number | null
  /** Why the attempt counts as failed; null if it succeeded. */
  error: string | null
  /** The beginning of the response body; null if there was no response. */
  answer: string | null
}
