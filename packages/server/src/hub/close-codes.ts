import type { CloseCode, CloseReason } from '@keyway/sdk/protocol'
import { KEY_REFUSAL_CODES, type KeyRefusal, refusalOf } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'
import type { KeyStatus } from './hub-ports.ts'

/**
 * Close code and reason (RFC 6455 section 7.4). This file lists all that the hub sends; ws closes with other codes if
 * an agent violates the protocol or FRAME_LIMITS.
 */
export interface CloseStatus {
  code: CloseCode
  /** With 4403, the error code with which the token exchange refuses the key. */
  reason: CloseReason | KeyRefusal
}

/** The agent sent a WebSocket message that is binary or not a JSON object. */
export const BAD_MESSAGE: CloseStatus = { code: 4400, reason: 'bad_message' }
export const INVALID_TOKEN: CloseStatus = { code: 4401, reason: 'invalid_token' }
/** The token expired without a renewal (see renewals.ts), or the key has expired. */
export const TOKEN_EXPIRED: CloseStatus = { code: 4408, reason: 'token_expired' }
/** The agent requested on another socket to resume this connection; see resumptions.ts. */
export const RESUMED_ELSEWHERE: CloseStatus = { code: 4409, reason: 'resumed_elsewhere' }
const REVOKED: CloseStatus = { code: 4410, reason: 'revoked' }
/**
 * The agent kept sending frames after `rate_limited` errors, its owner connects too often, or the agent resumes a
 * connection while its owner has used up its deliveries; see rate-limits.ts.
 */
export const RATE_LIMITED: CloseStatus = { code: 4429, reason: 'rate_limited' }
export const TOO_MANY_CONNECTIONS: CloseStatus = { code: 4429, reason: 'too_many_connections' }
/**
 * The agent, or all agents of its owner together, read too slowly; see agent-connection.ts, connection-checks.ts and
 * watches.ts.
 */
export const SLOW_CONSUMER: CloseStatus = { code: 4429, reason: 'slow_consumer' }
/** The owner or an administrator closed the connection. Also logged when a held connection, without a socket, ends. */
export const GOING_AWAY: CloseStatus = { code: 1001, reason: 'going_away' }
/** This node is shutting down; see drain.ts. */
export const RESTARTING: CloseStatus = { code: 1012, reason: 'restarting' }
/** This node cannot confirm that the key is active; see database-freshness.ts and connection-checks.ts. */
export const TRY_AGAIN_LATER: CloseStatus = { code: 1013, reason: 'try_again_later' }

/**
 * The close statuses of refusals to which clients react differently. Any other refusal of a key closes with 4403, and
 * its error code as the reason.
 */
const SPECIAL_STATUS_OF: Partial<Record<KeyRefusal, CloseStatus>> = {
  api_key_revoked: REVOKED,
  api_key_expired: TOKEN_EXPIRED,
}
const STATUS_OF_REFUSAL = Object.fromEntries(
  KEY_REFUSAL_CODES.map(code => [code, SPECIAL_STATUS_OF[code] ?? { code: 4403, reason: code }]),
) as Record<KeyRefusal, CloseStatus>

/** The close status if this key does not exist or may not be used for this connection; null if it may be used. */
export function refusalOfKey(
  key: KeyStatus | undefined,
  connection: { userId: string; address: string },
  now: Instant,
): CloseStatus | null {
  if (!key) return REVOKED
  if (key.userId !== connection.userId) return INVALID_TOKEN
  const refusal = refusalOf(key, { now, address: connection.address, scope: 'agent:connect' })
  return refusal && STATUS_OF_REFUSAL[refusal]
}

/** The error code of the key's refusal that this close status corresponds to; null for other statuses. */
export function refusalCodeOf(status: CloseStatus): KeyRefusal | null {
  return KEY_REFUSAL_CODES.find(code => STATUS_OF_REFUSAL[code] === status) ?? null
}

/** The close status if the token's own scopes allow no connection, or null. */
export function refusalOfScopes(connection: { allows(scope: string): boolean }): CloseStatus | null {
  return connection.allows('agent:connect') ? null : STATUS_OF_REFUSAL.insufficient_scope
}
