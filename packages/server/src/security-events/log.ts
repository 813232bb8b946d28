import type { Fact } from '../endings/fact.ts'
import type { Log } from '../log.ts'

/**
 * Logs the security events of a transaction that is durable. At `debug`, since at `info` what succeeds has no line; what
 * only an attack or a broken client causes is a warning.
 */
export function logSecurityEvents(log: Log, facts: readonly Fact[]): void {
  for (const fact of facts) {
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
