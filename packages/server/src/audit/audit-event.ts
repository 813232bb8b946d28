import { createHash } from 'node:crypto'
import { type Instant, toRfc3339 } from '../clock.ts'
import type { SecurityEventType } from '../security-events/security-event.ts'
import { canonicalJson, type PlainJson } from './canonical-json.ts'

/**
 * Every kind of administrative act, and the security event by which the person concerned learns of it; null where the
 * act concerns no single person, or an operation of the same transaction records one already.
 */
export const AUDIT_TYPES = {
  'user.role_changed': 'role_changed',
  'user.suspended': null,
  'user.activated': null,
  'user.deleted': null,
  'user.updated': 'profile_changed',
  'user.sessions_ended': null,
  'user.limits_cleared': 'limits_cleared',
  'user.credit_granted': 'credit_granted',
  'user.read': 'account_read',
  'api_key.revoked': null,
  'api_key.imported': null,
  'user.imported': null,
  'api_key.limits_changed': 'api_key_limits_changed',
  'agent.disconnected': 'agent_disconnected',
  'mail.sent_again': 'mail_sent_again',
  'mail.tested': null,
  'suppression.lifted': 'mail_allowed_again',
  'signing_key.rotated': null,
  'policies.changed': null,
  'invitation.created': null,
  'invitation.revoked': null,
  'app.registered': null,
  'app.updated': null,
  'app.removed': null,
  'app.secret_created': null,
  'app.secret_removed': null,
  'webhook.created': null,
  'webhook.updated': null,
  'webhook.removed': null,
  'webhook.secret_created': null,
  'webhook.secret_removed': null,
  'webhook.tested': null,
  'webhook.sent_again': null,
} as const satisfies Record<string, SecurityEventType | null>

export type AuditType = keyof typeof AUDIT_TYPES

export function isAuditType(text: string): text is AuditType {
  return Object.hasOwn(AUDIT_TYPES, text)
}

/**
 * Who acted: a user, the person who ran `keyway` on the machine (`command`), or the service itself (`service`), because
 * of a setting or an accepted invitation.
 */
export interface Actor {
  type: 'user' | 'command' | 'service'
  id: string | null
  /** The key or the session that authenticated the user. */
  key_id: string | null
  session_id: string | null
}

export const BY_COMMAND: Actor = { type: 'command', id: null, key_id: null, session_id: null }
export const BY_SETTING: Actor = { type: 'service', id: null, key_id: null, session_id: null }

export type SubjectType =
  | 'user'
  | 'api_key'
  | 'agent'
  | 'mail'
  | 'address'
  | 'signing_key'
  | 'app'
  | 'policies'
  | 'invitation'
  | 'webhook'

export interface Subject {
  type: SubjectType
  id: string | null
  /** The person concerned, if there is one. */
  user_id: string | null
}

/** Ids, numbers and states. For an address, a name or a secret it says only that the value changed. */
export type AuditedState = { readonly [name: string]: PlainJson }

/** An act, as an administrative operation reports it. */
export interface AuditChange {
  type: AuditType
  subject: Subject
  before: AuditedState | null
  after: AuditedState | null
}

/** A row of the audit without its place in the chain. */
export interface NewAuditEvent extends AuditChange {
  id: string
  at: Instant
  actor: Actor
  /** The row's hash covers only the salted hash of the reason, so that its text can be erased. */
  reason: SaltedReason | null
  network: string | null
  requestId: string | null
}

export interface SaltedReason {
  /** Null once it was erased with the account of the person concerned. */
  text: string | null
  /** Null once the text was erased. */
  salt: string | null
  /** SHA-256 of salt and text, in hexadecimal. */
  hash: string
}

export interface AuditEvent extends NewAuditEvent {
  /** 1, 2, 3 … without gaps. */
  sequence: number
  previousHash: string
  hash: string
}

export const MAX_REASON_LENGTH = 500
/** Maximum characters of `before` and `after` together, as JSON. Values that administrators set are far shorter. */
export const MAX_STATE_LENGTH = 8192

/** `previousHash` of the first row. */
export const FIRST_HASH = '0'.repeat(64)

/** SHA-256, in hexadecimal, of the previous hash followed by the canonical JSON (RFC 8785) of the row. */
export function hashOf(previousHash: string, event: NewAuditEvent): string {
  return sha256Hex(previousHash + canonicalJson(hashedFields(event)))
}

/** The fields under their public names, so that others can check the hashes of an export. */
function hashedFields(event: NewAuditEvent): PlainJson {
  const { id, at, actor, subject, type, before, after, reason, network, requestId } = event
  return {
    id,
    at: toRfc3339(at),
    actor: { ...actor },
    subject: { ...subject },
    type,
    before,
    after,
    reason: reason?.hash ?? null,
    network,
    request_id: requestId,
  }
}

export function reasonHash(salt: string, text: string): string {
  return sha256Hex(salt + text)
}

function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
