import type { Instant } from '../clock.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../network.ts'

export type SecurityEventType =
  | 'sign_in'
  | 'account_created'
  | 'refresh_token_reused'
  | 'session_ended'
  | 'api_key_created'
  | 'api_key_rotated'
  | 'api_key_revoked'
  | 'charge_authorization_granted'
  | 'charge_authorization_withdrawn'
  | 'account_suspended'
  | 'account_activated'
  | 'account_deleted'

/** What happened to an account, as its owner and the operator may read it. */
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
