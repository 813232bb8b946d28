import type { AuditEvent } from '../audit/audit-event.ts'
import type { Fact } from '../endings/fact.ts'
import type { Log } from '../log.ts'

/**
 * Logs the security events of a committed transaction, at `debug` like successful requests; an event that only an
 * attack or a broken client causes is a warning. Administrative acts are logged at `info`.
 */
export function logSecurityEvents(log: Log, facts: readonly Fact[]): void {
  for (const fact of facts) {
    if (fact.type === 'audit') logAct(log, fact.event)
    if (fact.type !== 'security_event') continue
    const { type, userId, keyId, sessionId, network } = fact.event
    const fields = {
      type,
      user_id: userId,
      network,
      ...(keyId && { key_id: keyId }),
      ...(sessionId && { session_id: sessionId }),
    }
    if (type === 'refresh_token_reused') log.warn(fields, 'security event')
    else log.debug(fields, 'security event')
  }
}

/** Logs an administrative act, without its reason, which may name a person. */
function logAct(log: Log, { type, actor, subject, network, requestId, sequence }: AuditEvent): void {
  log.info(
    {
      type,
      actor: actor.type,
      ...(actor.id && { actor_id: actor.id }),
      subject: subject.type,
      ...(subject.id && { subject_id: subject.id }),
      network,
      request_id: requestId,
      sequence,
    },
    'administrative act',
  )
}
