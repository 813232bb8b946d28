import { DAY, type Instant } from '../clock.ts'
import { newOrderedId } from '../ids.ts'
import type { Caller } from '../network.ts'

export type SecurityEventType =
  | 'sign_in'
  | 'account_created'
  | 'refresh_token_reused'
  | 'session_ended'
  | 'api_key_created'
  | 'api_key_rotated'
  | 'api_key_revoked'
  | 'api_key_used_again'
  | 'api_key_new_network'
  | 'api_key_limit_near'
  | 'api_key_limit_reached'
  | 'charge_authorization_granted'
  | 'charge_authorization_withdrawn'
  | 'consent_granted'
  | 'consent_withdrawn'
  | 'account_suspended'
  | 'account_activated'
  | 'account_deleted'
  | 'account_deletion_requested'
  | 'account_deletion_cancelled'
  | 'email_change_requested'
  | 'email_changed'
  | 'role_changed'
  | 'profile_changed'
  | 'limits_cleared'
  | 'credit_granted'
  | 'account_read'
  | 'api_key_limits_changed'
  | 'agent_disconnected'
  | 'mail_sent_again'
  | 'mail_allowed_again'

export const EVENTS_KEPT_FOR = 400 * DAY

/** The groups of events by subject, for filters of lists. */
export const EVENT_GROUPS = ['sign_ins', 'keys', 'account', 'apps', 'support'] as const
export type EventGroup = (typeof EVENT_GROUPS)[number]

const GROUP_OF: Record<SecurityEventType, EventGroup> = {
  sign_in: 'sign_ins',
  refresh_token_reused: 'sign_ins',
  session_ended: 'sign_ins',
  api_key_created: 'keys',
  api_key_rotated: 'keys',
  api_key_revoked: 'keys',
  api_key_used_again: 'keys',
  api_key_new_network: 'keys',
  api_key_limit_near: 'keys',
  api_key_limit_reached: 'keys',
  account_created: 'account',
  account_suspended: 'account',
  account_activated: 'account',
  account_deleted: 'account',
  account_deletion_requested: 'account',
  account_deletion_cancelled: 'account',
  email_change_requested: 'account',
  email_changed: 'account',
  charge_authorization_granted: 'apps',
  charge_authorization_withdrawn: 'apps',
  consent_granted: 'apps',
  consent_withdrawn: 'apps',
  role_changed: 'support',
  profile_changed: 'support',
  limits_cleared: 'support',
  credit_granted: 'support',
  account_read: 'support',
  api_key_limits_changed: 'support',
  agent_disconnected: 'support',
  mail_sent_again: 'support',
  mail_allowed_again: 'support',
}

export const SECURITY_EVENT_TYPES = Object.keys(GROUP_OF) as SecurityEventType[]

export function isSecurityEventType(text: string): text is SecurityEventType {
  return Object.hasOwn(GROUP_OF, text)
}

export function typesOfGroup(group: EventGroup): SecurityEventType[] {
  return SECURITY_EVENT_TYPES.filter(type => GROUP_OF[type] === group)
}

/** An event of an account, visible to its owner and the operator. */
export interface SecurityEvent {
  id: string
  userId: string
  type: SecurityEventType
  at: Instant
  network: string | null
  client: string | null
  keyId: string | null
  sessionId: string | null
}

/**
 * Creates an event. Lists show events of one millisecond in the order in which they were created. The id may be created
 * inside the transaction: it is not used to read back the outcome, and a transaction runs again only after a rollback.
 *
 * @param caller null for the operator or the service itself
 */
export function securityEvent(
  type: SecurityEventType,
  userId: string,
  at: Instant,
  caller: Pick<Caller, 'network' | 'client'> | null,
  about: { keyId?: string; sessionId?: string } = {},
): SecurityEvent {
  return {
    id: newOrderedId(at),
    userId,
    type,
    at,
    network: caller?.network ?? null,
    client: caller?.client ?? null,
    keyId: about.keyId ?? null,
    sessionId: about.sessionId ?? null,
  }
}
