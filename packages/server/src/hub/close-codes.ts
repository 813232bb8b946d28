import type { CloseCode, CloseReason } from '@keyway/sdk/protocol'
import { type KeyRefusal, refusalOf } from '../api-keys/api-key.ts'
import type { Instant } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import type { KeyStatus } from './hub-ports.ts'

/** Close code and reason (RFC 6455 section 7.4). All that the hub uses are listed here. */
export interface Ending {
  code: CloseCode
  reason: CloseReason
}

/** A frame that is not one JSON object in one text message. */
export const BAD_MESSAGE: Ending = { code: 4400, reason: 'bad_message' }
export const INVALID_TOKEN: Ending = { code: 4401, reason: 'invalid_token' }
const INSUFFICIENT_SCOPE: Ending = { code: 4403, reason: 'insufficient_scope' }
const ACCOUNT_SUSPENDED: Ending = { code: 4403, reason: 'account_suspended' }
const NETWORK_NOT_ALLOWED: Ending = { code: 4403, reason: 'network_not_allowed' }
/** The token ended unrenewed (see renewals.ts), or the key has expired. */
export const TOKEN_EXPIRED: Ending = { code: 4408, reason: 'token_expired' }
const REVOKED: Ending = { code: 4410, reason: 'revoked' }
/** More frames than rate-limits.ts allows, also after `rate_limited` errors. */
export const RATE_LIMITED: Ending = { code: 4429, reason: 'rate_limited' }
/** Its owner has the maximum number on this node; see connections.ts. */
export const TOO_MANY_CONNECTIONS: Ending = { code: 4429, reason: 'too_many_connections' }
/** It reads too slowly; see agent-connection.ts. */
export const SLOW_CONSUMER: Ending = { code: 4429, reason: 'slow_consumer' }
/** Its owner closed it through the API. */
export const GOING_AWAY: Ending = { code: 1001, reason: 'going_away' }
/** This node shuts down; see drain.ts. */
export const RESTARTING: Ending = { code: 1012, reason: 'restarting' }
/** This node cannot confirm that its key is active; see database-freshness.ts. */
export const TRY_AGAIN_LATER: Ending = { code: 1013, reason: 'try_again_later' }

/** Refusals of a key as close codes. */
const ENDINGS: Record<KeyRefusal, Ending> = {
  api_key_revoked: REVOKED,
  api_key_expired: TOKEN_EXPIRED,
  account_suspended: ACCOUNT_SUSPENDED,
  network_not_allowed: NETWORK_NOT_ALLOWED,
  insufficient_scope: INSUFFICIENT_SCOPE,
}

/** Why this key may not hold a connection from this address, or null when it may. */
export function refusalOfKey(
  key: KeyStatus | undefined,
  connection: Pick<AgentConnection, 'userId' | 'address'>,
  now: Instant,
): Ending | null {
  if (!key) return REVOKED
  if (key.userId !== connection.userId) return INVALID_TOKEN
  const refusal = refusalOf(key, { now, address: connection.address, scope: 'agent:connect' })
  return refusal && ENDINGS[refusal]
}

/** Why the token's own scopes allow no connection, or null when they do. */
export function refusalOfScopes(connection: AgentConnection): Ending | null {
  return connection.allows('agent:connect') ? null : INSUFFICIENT_SCOPE
}
