import type {
  AccountObject,
  AgentConnectionObject,
  ApiKeyObject,
  ChargeAuthorizationObject,
  LedgerEntryObject,
  SecurityEventObject,
  SessionAnswer,
  SessionObject,
  UserObject,
} from '@keyway/sdk/protocol'
import { type ApiKey, statusOf } from '../api-keys/api-key.ts'
import type { Account } from '../billing/accounts.ts'
import type { ChargeAuthorization } from '../billing/charge-authorizations.ts'
import type { LedgerEntry } from '../billing/ledger.ts'
import { CURRENCY, formatMoney } from '../billing/money.ts'
import { type Instant, toRfc3339 } from '../clock.ts'
import type { PresenceRow } from '../hub/presence-store.ts'
import type { SecurityEvent } from '../security-events/security-event.ts'
import type { Session } from '../sessions/session.ts'
import type { SessionTokens } from '../sessions/sessions.ts'
import type { User } from '../users/user.ts'

/*
 * How each noun looks outside. Every object is built name by name: what is not listed here never leaves.
 */

export function apiKeyObject(key: ApiKey, now: Instant): ApiKeyObject {
  return {
    id: key.id,
    user_id: key.userId,
    key_prefix: key.keyPrefix,
    name: key.name,
    app_id: key.appId,
    scopes: key.scopes,
    unrestricted: key.scopes.length === 0,
    allowed_networks: key.allowedNetworks,
    status: statusOf(key, now),
    created_at: toRfc3339(key.createdAt),
    last_used_at: orNull(key.lastUsedAt),
    expires_at: orNull(key.expiresAt),
    revoked_at: orNull(key.revokedAt),
    replaced_by: key.replacedBy,
  }
}

export function userObject(user: User): UserObject {
  return {
    id: user.id,
    email: user.email ?? '',
    name: user.name,
    role: user.role,
    status: user.status,
    created_at: toRfc3339(user.createdAt),
  }
}

export function sessionAnswer(user: User, session: Session, tokens: SessionTokens): SessionAnswer {
  return {
    user: userObject(user),
    access_token: tokens.accessToken,
    token_type: 'Bearer',
    expires_in: tokens.expiresIn,
    refresh_token: tokens.refreshToken,
    refresh_expires_in: tokens.refreshExpiresIn,
    session_id: session.id,
  }
}

/** @param expiresAt when it ends unless it is refreshed */
export function sessionObject(session: Session, expiresAt: Instant, currentId: string | null): SessionObject {
  return {
    id: session.id,
    created_at: toRfc3339(session.createdAt),
    last_used_at: toRfc3339(session.lastUsedAt),
    expires_at: toRfc3339(expiresAt),
    client: session.client,
    network: session.network,
    current: session.id === currentId,
  }
}

export function accountObject(user: User, account: Account): AccountObject {
  const { plan, status, startedAt } = account.subscription
  return {
    user: userObject(user),
    balance: { amount: formatMoney(account.balance), currency: CURRENCY },
    subscription: { plan, status, started_at: toRfc3339(startedAt) },
    charge_authorizations: account.authorizations.map(chargeAuthorizationObject),
  }
}

export function chargeAuthorizationObject(authorization: ChargeAuthorization): ChargeAuthorizationObject {
  return {
    app_id: authorization.appId,
    name: authorization.name,
    granted_at: toRfc3339(authorization.grantedAt),
    revoked_at: orNull(authorization.revokedAt),
  }
}

export function ledgerEntryObject(entry: LedgerEntry): LedgerEntryObject {
  return {
    id: entry.id,
    kind: entry.kind,
    amount: formatMoney(entry.amount),
    balance_after: formatMoney(entry.balanceAfter),
    app_id: entry.appId,
    description: entry.description,
    created_at: toRfc3339(entry.createdAt),
  }
}

export function securityEventObject(event: SecurityEvent): SecurityEventObject {
  return {
    id: event.id,
    type: event.type,
    at: toRfc3339(event.at),
    network: event.network,
    client: event.client,
    ...(event.keyId && { key_id: event.keyId }),
    ...(event.sessionId && { session_id: event.sessionId }),
  }
}

export function connectionObject(row: PresenceRow): AgentConnectionObject {
  return {
    connection_id: row.connectionId,
    key_id: row.keyId,
    key_name: row.keyName,
    connected_at: toRfc3339(row.connectedAt),
    address: row.address,
    client: row.client,
  }
}

function orNull(instant: Instant | null): string | null {
  return instant === null ? null : toRfc3339(instant)
}
