import { DAY, type Instant, SECOND } from '../clock.ts'
import type { SentEventType, WebhookEventType, WebhookSubject } from './webhook-event.ts'

/** Maximum number of endpoints: each act is written once for every endpoint that subscribes to it. */
export const MAX_WEBHOOKS = 20
/** Each body is signed with all of them. */
export const MAX_SECRETS = 5
export const MAX_URL_LENGTH = 2048
/** Events that wait for one endpoint; beyond it the oldest are dropped, those of agents first. */
export const MAX_WAITING = 100_000
/** Settled events that the log of one endpoint has of each state; beyond it the oldest of agents are removed. */
export const MAX_LOGGED = 200_000
/** After this time of failed attempts an event is given up. */
export const GIVE_UP_AFTER = 3 * DAY
/** How long a node has for one attempt and the record of its outcome, before another node tries. */
export const LEASE = 30 * SECOND
/** Bytes of an answer that the log keeps. */
export const ANSWER_BYTES = 1024

/** An endpoint that events are sent to. */
export interface Webhook {
  id: string
  url: string
  /** Empty: all. */
  events: WebhookEventType[]
  createdAt: Instant
  /** Null: events are sent. */
  disabledAt: Instant | null
  disabledBy: 'person' | 'failures' | null
  /** Events that were dropped because too many waited. */
  dropped: number
}

export interface WebhookSecret {
  id: string
  webhookId: string
  /** Purpose `webhook-secret`, context the id. */
  sealedSecret: string
  createdAt: Instant
}

/** `failed`: given up. `dropped`: too many waited. */
export type DeliveryState = 'waiting' | 'delivered' | 'failed' | 'dropped'

/** One event for one endpoint. Its id is the `webhook-id`, the same on every attempt. */
export interface WebhookDelivery {
  id: string
  webhookId: string
  queueId: string
  subject: WebhookSubject
  /** 1, 2, 3 … for this endpoint and subject. */
  sequence: number
  type: SentEventType
  /** JSON. */
  data: string
  state: DeliveryState
  createdAt: Instant
  /** Attempts since it was queued, or queued again. */
  attempts: number
  firstAttemptAt: Instant | null
  /** When it was delivered, given up or dropped. */
  settledAt: Instant | null
  /** The result of the last attempt. */
  last: AttemptResult | null
}

/** The result of one call. */
export interface AttemptResult {
  at: Instant
  durationMs: number
  /** Null: there was no answer. */
  status: number | null
  /** Why it counts as failed; null if it does not. */
  error: string | null
  /** The beginning of the answer. */
  answer: string | null
}
