import type { WebhookEventType } from '../../webhooks/webhook-event.ts'

/** A description of each event, for the form of an endpoint. */
export const WEBHOOK_EVENT_DESCRIPTIONS: Record<WebhookEventType, string> = {
  'user.created': 'Somebody signed up, or was imported.',
  'user.updated': 'A name, address, role or language changed.',
  'user.suspended': 'An account was suspended.',
  'user.activated': 'A suspension was lifted.',
  'user.deleted': 'An account was deleted.',
  'session.created': 'Somebody signed in.',
  'session.ended': 'Somebody signed out or was signed out.',
  'session.reuse_detected': 'A refresh token was used twice; its session ended.',
  'api_key.created': 'A key was created.',
  'api_key.updated': 'Name, networks or limits of a key changed.',
  'api_key.rotated': 'A key got a successor.',
  'api_key.revoked': 'A key was revoked.',
  'api_key.expiring': 'A key expires soon.',
  'api_key.expired': 'A key expired.',
  'api_key.limit_reached': 'A key reached one of its limits.',
  'charge.created': 'An app charged a balance.',
  'balance.low': 'A charge left little on a balance.',
  'agent.connected': 'An agent connected.',
  'agent.disconnected': 'An agent disconnected.',
  'mail.bounced': 'Mail to an address came back, or was a complaint.',
  'audit.recorded': 'The newest entry of the audit was signed: keep this event elsewhere as a proof.',
}

/** Headings of groups of events, by the part of their names before the dot. */
export const WEBHOOK_EVENT_GROUPS: Record<string, string> = {
  user: 'People',
  session: 'Sessions',
  api_key: 'Keys',
  charge: 'Money',
  balance: 'Money',
  agent: 'Agents',
  mail: 'Mail',
  audit: 'Audit',
}
