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
/** Sent on request only, to one endpoint. */
export const TEST_EVENT = 'webhook.test'
export type SentEventType = WebhookEventType | typeof TEST_EVENT

/** How long a delivery stays in the log after it was settled. */
export const DELIVERIES_KEPT_FOR = 7 * DAY

/** When too many events are queued, those with this prefix are dropped first: they report a past state, not an act. */
export const DROPPED_FIRST = 'agent.'

/** What an event is about. Events of one subject are numbered, and delivered one after the other. */
export interface WebhookSubject {
  type: 'user' | 'session' | 'api_key' | 'balance' | 'agent' | 'mail' | 'audit' | 'webhook'
  /** The subject's id: for a balance its owner's id, for the audit `chain`. */
  id: string
}

/** Ids, numbers and states; never an address, a name or a secret. */
export type WebhookData = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

export interface WebhookEvent {
  type: SentEventType
  subject: WebhookSubject
  at: Instant
  data: WebhookData
}

/** The stored form: `type:id`. */
export function subjectText({ type, id }: WebhookSubject): string {
  return `${type}:${id}`
}

export function parseSubject(text: string): WebhookSubject {
  const colon = text.indexOf(':')
  return { type: text.slice(0, colon) as WebhookSubject['type'], id: text.slice(colon + 1) }
}

/**
 * Types that are the last event of their subject, each with the delay after which its queue may be pruned. An expired
 * key may still be revoked for as long as it is kept.
 */
const LAST_EVENTS: ReadonlyMap<SentEventType, number> = new Map([
  ['user.deleted', DELIVERIES_KEPT_FOR],
  ['session.ended', DELIVERIES_KEPT_FOR],
  ['api_key.revoked', DELIVERIES_KEPT_FOR],
  ['agent.disconnected', DELIVERIES_KEPT_FOR],
  ['api_key.expired', 401 * DAY],
])

/** When the queue of a subject with this event may be pruned; null: more events may follow. */
export function forgottenAfter(type: SentEventType, at: Instant): Instant | null {
  const kept = LAST_EVENTS.get(type)
  return kept === undefined ? null : at + kept
}

export function isWebhookEventType(text: string): text is WebhookEventType {
  return (WEBHOOK_EVENT_TYPES as readonly string[]).includes(text)
}
