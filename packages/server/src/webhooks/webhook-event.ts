import { DAY, type Instant } from '../clock.ts'

/** Every kind of event that an endpoint can listen to, in the order of the documentation. */
export const WEBHOOK_EVENT_TYPES = [
  'user.created',
  'user.updated',
  'user.suspended',
  'user.activated',
  'user.deleted',
  'session.created',
  'session.ended',
  'session.reuse_detected',
  'api_key.created',
  'api_key.updated',
  'api_key.rotated',
  'api_key.revoked',
  'api_key.expiring',
  'api_key.expired',
  'api_key.limit_reached',
  'charge.created',
  'balance.low',
  'agent.connected',
  'agent.disconnected',
  'mail.bounced',
  'audit.recorded',
] as const

export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number]
/** The type of test events, which are sent on request only, to one endpoint. */
export const TEST_EVENT = 'webhook.test'
export type SentEventType = WebhookEventType | typeof TEST_EVENT

/** How long an endpoint's log keeps an event after it was delivered, given up or dropped, unless the log is full. */
export const DELIVERIES_KEPT_FOR = 7 * DAY

/**
 * The prefix of the types that are dropped first when too many events are queued, and removed first from a full log:
 * connections come and go often, and their events are the least important.
 */
export const DROPPED_FIRST_PREFIX = 'agent.'

/** The thing that an event reports on. Events of one subject are numbered, and delivered one after the other. */
export interface WebhookSubject {
  type: 'user' | 'session' | 'api_key' | 'balance' | 'agent' | 'mail' | 'audit' | 'webhook'
  /**
   * For a balance the id of its owner, for the audit the constant `chain`, for a mail the id of the account with its
   * address or else an id of its own, otherwise the thing's own id.
   */
  id: string
}

/** The data of an event: ids, numbers and states; never an address, a name or a secret. */
export type WebhookData = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

export interface WebhookEvent {
  type: SentEventType
  subject: WebhookSubject
  at: Instant
  data: WebhookData
}

export function subjectText({ type, id }: WebhookSubject): string {
  return `${type}:${id}`
}

export function parseSubject(text: string): WebhookSubject {
  const colon = text.indexOf(':')
  return { type: text.slice(0, colon) as WebhookSubject['type'], id: text.slice(colon + 1) }
}

/**
 * Types that are the last event of their subject, each with the delay after which the subject's queue may be pruned.
 * An expired key may still be revoked until its row is deleted, so the delay after `api_key.expired` is longer.
 */
const LAST_EVENTS: ReadonlyMap<SentEventType, number> = new Map([
  ['user.deleted', DELIVERIES_KEPT_FOR],
  ['session.ended', DELIVERIES_KEPT_FOR],
  ['api_key.revoked', DELIVERIES_KEPT_FOR],
  ['agent.disconnected', DELIVERIES_KEPT_FOR],
  ['api_key.expired', 401 * DAY],
])

/** When the queue of a subject may be pruned after this event; null if more events may follow. */
export function queuePrunableAt(type: SentEventType, at: Instant): Instant | null {
  const delay = LAST_EVENTS.get(type)
  return delay === undefined ? null : at + delay
}

export function isWebhookEventType(text: string): text is WebhookEventType {
  return (WEBHOOK_EVENT_TYPES as readonly string[]).includes(text)
}
