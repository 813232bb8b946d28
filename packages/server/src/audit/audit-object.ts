import type { AuditEventObject } from '@keyway/sdk/protocol'
import { toRfc3339 } from '../clock.ts'
import { csvCell } from '../csv.ts'
import type { AuditEvent } from './audit-event.ts'

/**
 * The JSON form of an audit row. Its hash is computed from the fields up to `request_id`, with `reason_hash` as
 * `reason`.
 */
export function auditEventObject(event: AuditEvent): AuditEventObject {
  const { actor, subject, reason } = event
  return {
    id: event.id,
    at: toRfc3339(event.at),
    actor: { ...actor },
    subject: { ...subject },
    type: event.type,
    before: event.before as AuditEventObject['before'],
    after: event.after as AuditEventObject['after'],
    reason: reason?.text ?? null,
    network: event.network,
    request_id: event.requestId,
    reason_hash: reason?.hash ?? null,
    reason_salt: reason?.salt ?? null,
    sequence: event.sequence,
    previous_hash: event.previousHash,
    hash: event.hash,
  }
}

const COLUMNS = [
  'sequence',
  'id',
  'at',
  'type',
  'actor_type',
  'actor_id',
  'actor_key_id',
  'actor_session_id',
  'subject_type',
  'subject_id',
  'subject_user_id',
  'before',
  'after',
  'reason',
  'reason_hash',
  'reason_salt',
  'network',
  'request_id',
  'previous_hash',
  'hash',
] as const

export const AUDIT_CSV_HEADER = `${COLUMNS.join(',')}\r\n`

/** One record of CSV (RFC 4180), in which spreadsheets evaluate no cell as a formula. */
export function auditCsvLine(event: AuditEvent): string {
  const { actor, subject, before, after, ...object } = auditEventObject(event)
  const record: Record<(typeof COLUMNS)[number], unknown> = {
    ...object,
    actor_type: actor.type,
    actor_id: actor.id,
    actor_key_id: actor.key_id,
    actor_session_id: actor.session_id,
    subject_type: subject.type,
    subject_id: subject.id,
    subject_user_id: subject.user_id,
    before: before && JSON.stringify(before),
    after: after && JSON.stringify(after),
  }
  return `${COLUMNS.map(name => csvCell(record[name])).join(',')}\r\n`
}
