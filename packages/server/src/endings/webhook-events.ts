import type { ApiKey } from '../api-keys/api-key.ts'
import type { LedgerEntry } from '../billing/ledger.ts'
import { formatMoney, type MicroDollars } from '../billing/money.ts'
import { type Instant, toRfc3339, toRfc3339OrNull } from '../clock.ts'
import type { PresenceRow } from '../hub/presence-store.ts'
import type { SessionEndCause } from '../sessions/session.ts'
import type { RecordedChanges } from '../store.ts'
import type { User } from '../users/user.ts'
import type { WebhookData, WebhookEvent, WebhookEventType } from '../webhooks/webhook-event.ts'

/**
 * Maps each operation to a function that returns its webhook events, given its outcome and arguments; null if it has
 * none.
 */
type WebhookEventsOf<Operations> = {
  [Operation in keyof Operations]: Operations[Operation] extends (
    ...args: infer Args
  ) => Promise<infer Outcome>
    ? ((outcome: Outcome, ...args: Args) => readonly WebhookEvent[]) | null
    : never
}
export type WebhookEventTable = { [Noun in keyof RecordedChanges]: WebhookEventsOf<RecordedChanges[Noun]> }

const NO_EVENTS: readonly WebhookEvent[] = []

/**
 * The webhook events of each operation. Events that no operation implies are announced explicitly
 * (`Transaction.announce`). The data of all webhook events contain no names of people or keys, no addresses and no
 * secrets.
 */
export const WEBHOOK_EVENTS: WebhookEventTable = {
  users: {
    insert: (isNew, user) => (isNew ? [userCreated(user)] : NO_EVENTS),
    insertImported: (isNew, user) => (isNew ? [userCreated(user)] : NO_EVENTS),
    rename: (user, id, _name, at) =>
      user ? [userEvent('user.updated', id, at, { changed: ['name'] })] : NO_EVENTS,
    setLocale: (user, id, _locale, at) =>
      user ? [userEvent('user.updated', id, at, { changed: ['locale'] })] : NO_EVENTS,
    setRole: (user, id, role, at) =>
      user ? [userEvent('user.updated', id, at, { changed: ['role'], role })] : NO_EVENTS,
    suspend: (user, id, at) =>
      user ? [userEvent('user.suspended', id, at, { status: 'suspended' })] : NO_EVENTS,
    activate: (user, id, at) =>
      user ? [userEvent('user.activated', id, at, { status: 'active' })] : NO_EVENTS,
    scheduleDeletion: (user, id, deletesAt, { at }) => deletionDateEvents(user, id, deletesAt, at),
    cancelDeletion: (user, id, { at }) => deletionDateEvents(user, id, null, at),
    postponeDeletion: (user, id, until, at) => deletionDateEvents(user, id, until, at),
    changeEmail: (user, id, _from, _to, { at }) =>
      user ? [userEvent('user.updated', id, at, { changed: ['email'] })] : NO_EVENTS,
    erase: (user, id, at) => (user ? [userEvent('user.deleted', id, at, { status: 'deleted' })] : NO_EVENTS),
  },
  apiKeys: {
    insert: (_, key) => [keyCreated(key)],
    insertImported: (isNew, key) => (isNew ? [keyCreated(key)] : NO_EVENTS),
    update: (key, userId, id, change, now) =>
      key ? [keyEvent('api_key.updated', id, userId, now, { changed: changedFields(change) })] : NO_EVENTS,
    revoke: (key, id, _revokedAt, { at }) =>
      key ? [keyEvent('api_key.revoked', id, key.userId, at)] : NO_EVENTS,
    revokeAllOf: (ids, userId, at) => ids.map(id => keyEvent('api_key.revoked', id, userId, at)),
    replace(key, id, successorId, _expiresAt, now) {
      if (!key) return NO_EVENTS
      const { userId, expiresAt, revokedAt } = key
      const rotatedEvent = keyEvent('api_key.rotated', id, userId, now, {
        replaced_by: successorId,
        expires_at: toRfc3339(expiresAt!),
      })
      return revokedAt === null
        ? [rotatedEvent]
        : [rotatedEvent, keyEvent('api_key.revoked', id, userId, now)]
    },
  },
  sessions: {
    insert: (_, { id, userId, appId, kind, createdAt }) => [
      sessionEvent('session.created', id, userId, createdAt, { app_id: appId, kind }),
    ],
    end(session, id, cause, _endedAt, { at }) {
      if (!session) return NO_EVENTS
      const reuseEvents =
        cause === 'reuse' ? [sessionEvent('session.reuse_detected', id, session.userId, at)] : []
      return [...reuseEvents, sessionEnded(id, session.userId, cause, at)]
    },
    endAllOf: (ids, userId, cause, _exceptId, { at }) => ids.map(id => sessionEnded(id, userId, cause, at)),
    endSurplusOf: (ids, userId, _kept, _limit, { at }) =>
      ids.map(id => sessionEnded(id, userId, 'revoked', at)),
    endAllOfApp: (ids, userId, _appId, { at }) => ids.map(id => sessionEnded(id, userId, 'revoked', at)),
    endAllOfSignIn: (sessions, _signInId, { at }) =>
      sessions.map(({ id, userId }) => sessionEnded(id, userId, 'logout', at)),
    endSomeOfApp: (sessions, _appId, _limit, { at }) =>
      sessions.map(({ id, userId }) => sessionEnded(id, userId, 'revoked', at)),
  },
  billing: {
    // `post` records credits, which have no webhook event; `balance.low` is about charges only.
    post: null,
    charge: posted => (posted && typeof posted === 'object' ? [chargeCreated(posted.entry)] : NO_EVENTS),
    claimTrialCredit: null,
    authorize: null,
    withdraw: null,
    withdrawSomeOfApp: null,
  },
  presence: {
    record: ({ joined, left }, _nodeId, _added, _removed, now) => [
      ...joined.map(row => agentEvent('agent.connected', row, now)),
      ...left.map(row => agentEvent('agent.disconnected', row, now)),
    ],
    deregister: (left, _nodeId, now) => left.map(row => agentEvent('agent.disconnected', row, now)),
    prune: ({ left }, _notSeenSince, _batch, now) =>
      left.map(row => agentEvent('agent.disconnected', row, now)),
  },
  securityEvents: { insert: null },
  magicLinks: { consume: null, consumeOthers: null, consumeAllOf: null },
  consents: { grant: null, withdraw: null, withdrawSomeOfApp: null },
  audit: { append: null },
  apps: { addSecret: null, removeSecret: null, dropSecrets: null, remove: null },
  invitations: { insert: null, accept: null, revoke: null },
  policies: { set: null },
  replay: {
    endKeyBy: null,
    replaceNetworks: null,
    removeAppSecretsBesides: null,
    withdrawAsOf: null,
    withdrawConsentAsOf: null,
  },
}

function userCreated({ id, role, status, createdAt }: User): WebhookEvent {
  return userEvent('user.created', id, createdAt, { role, status })
}

function keyCreated({ id, userId, createdAt, appId, scopes, expiresAt }: ApiKey): WebhookEvent {
  const expires_at = expiresAt === null ? null : toRfc3339(expiresAt)
  return keyEvent('api_key.created', id, userId, createdAt, { app_id: appId, scopes, expires_at })
}

/** `balance.low` for each entry that lowered a balance from at least `mark` to below it. */
export function lowBalances(entries: readonly LedgerEntry[], mark: MicroDollars): WebhookEvent[] {
  const crossingEntries = entries.filter(
    ({ amount, balanceAfter }) => balanceAfter < mark && balanceAfter - amount >= mark,
  )
  return crossingEntries.map(({ userId, balanceAfter, createdAt }) => ({
    type: 'balance.low',
    subject: { type: 'balance', id: userId },
    at: createdAt,
    data: { user_id: userId, balance: formatMoney(balanceAfter), mark: formatMoney(mark), currency: 'USD' },
  }))
}

function chargeCreated({
  id,
  userId,
  appId,
  keyId,
  amount,
  balanceAfter,
  createdAt,
}: LedgerEntry): WebhookEvent {
  return {
    type: 'charge.created',
    subject: { type: 'balance', id: userId },
    at: createdAt,
    data: {
      ledger_entry_id: id,
      user_id: userId,
      app_id: appId,
      key_id: keyId,
      amount: formatMoney(amount),
      balance_after: formatMoney(balanceAfter),
      currency: 'USD',
    },
  }
}

export function keyEvent(
  type: WebhookEventType,
  id: string,
  userId: string,
  at: Instant,
  data: WebhookData = {},
): WebhookEvent {
  return { type, subject: { type: 'api_key', id }, at, data: { key_id: id, user_id: userId, ...data } }
}

function userEvent(type: WebhookEventType, id: string, at: Instant, data: WebhookData): WebhookEvent {
  return { type, subject: { type: 'user', id }, at, data: { user_id: id, ...data } }
}

function deletionDateEvents(
  user: User | null,
  id: string,
  deletesAt: Instant | null,
  at: Instant,
): readonly WebhookEvent[] {
  const data = { changed: ['deletes_at'], deletes_at: toRfc3339OrNull(deletesAt) }
  return user ? [userEvent('user.updated', id, at, data)] : NO_EVENTS
}

function sessionEvent(
  type: WebhookEventType,
  id: string,
  userId: string,
  at: Instant,
  data: WebhookData = {},
): WebhookEvent {
  return { type, subject: { type: 'session', id }, at, data: { session_id: id, user_id: userId, ...data } }
}

function sessionEnded(id: string, userId: string, cause: SessionEndCause, at: Instant): WebhookEvent {
  return sessionEvent('session.ended', id, userId, at, { cause })
}

function agentEvent(type: WebhookEventType, row: PresenceRow, at: Instant): WebhookEvent {
  const { connectionId, userId, keyId } = row
  return {
    type,
    subject: { type: 'agent', id: connectionId },
    at,
    data: { connection_id: connectionId, user_id: userId, key_id: keyId },
  }
}

const PUBLIC_FIELD_NAMES = {
  name: 'name',
  allowedNetworks: 'allowed_networks',
  externalId: 'external_id',
  metadata: 'metadata',
  limits: 'limits',
  operatorLimits: 'operator_limits',
} as const

function changedFields(change: { [Field in keyof typeof PUBLIC_FIELD_NAMES]?: unknown }): string[] {
  const names = Object.keys(PUBLIC_FIELD_NAMES) as (keyof typeof PUBLIC_FIELD_NAMES)[]
  return names.filter(name => change[name] !== undefined).map(name => PUBLIC_FIELD_NAMES[name])
}
