import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'
import type { SecurityEvent, SecurityEventType } from './security-event.ts'

/**
 * One event, ready to be written in the transaction that it tells of. Nothing is ever read back by its id, and
 * an undone run leaves none behind, so the id may be made inside the transaction.
 *
 * @param caller null when the operator or the service itself did it
 */
export function securityEvent(
  type: SecurityEventType,
  userId: string,
  at: Instant,
  caller: Caller | null,
  about: { keyId?: string; sessionId?: string } = {},
): SecurityEvent {
  return {
    id: newId(at),
    userId,
    type,
    at,
    network: caller?.network ?? null,
    client: caller?.client ?? null,
    keyId: about.keyId ?? null,
    sessionId: about.sessionId ?? null,
  }
}
