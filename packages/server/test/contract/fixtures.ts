import type { ApiKey } from '../../src/api-keys/api-key.ts'
import { type App, DEFAULT_APP_SETTINGS } from '../../src/apps/app.ts'
import type { LedgerEntry } from '../../src/billing/ledger.ts'
import { DAY, type Instant, MINUTE, SECOND } from '../../src/clock.ts'
import type { DeviceAuthorization } from '../../src/device-authorizations/device-authorization.ts'
import { newId } from '../../src/ids.ts'
import { NO_LIMITS } from '../../src/limits/limit.ts'
import type { MagicLink } from '../../src/magic-links/magic-link.ts'
import type { OutboxMessage } from '../../src/outbox/message.ts'
import type { Session } from '../../src/sessions/session.ts'
import type { SigningKey } from '../../src/signing-keys/signing-key.ts'
import type { DatabaseStorage } from '../../src/storage/database.ts'
import type { AuditedTransaction, Storage, Transaction } from '../../src/store.ts'
import type { EmailAddress } from '../../src/users/email-address.ts'
import type { User } from '../../src/users/user.ts'
import type { TestStorage } from '../support/engines.ts'

export const NOW: Instant = Date.UTC(2026, 10, 20, 12)
/** Attribution of changes for tests that do not check it. */
export const BY_SERVICE = { at: NOW, caller: null }

export function address(text: string): EmailAddress {
  return text as EmailAddress
}

/** The transaction with its administrative operations, for tests that need no audit of them. */
export function audited(tx: Transaction): AuditedTransaction {
  return tx as AuditedTransaction
}

export function aUser(change: Partial<User> = {}): User {
  const id = newId(NOW)
  const email = address(`${id}@example.com`)
  const state = { role: 'user', status: 'active', createdAt: NOW, deletesAt: null, locale: null } as const
  return { id, email, name: null, ...state, ...change }
}

export async function insertUser(store: DatabaseStorage['store'], change: Partial<User> = {}): Promise<User> {
  const user = aUser(change)
  await store.users.insert(user)
  return user
}

export function aKey(userId: string, change: Partial<ApiKey> = {}): ApiKey {
  const id = newId(NOW)
  return {
    id,
    userId,
    appId: 'service-sdk',
    keyHash: `hash of ${id}`,
    keyPrefix: 'svc_abcdefgh',
    name: 'a key',
    scopes: ['agent:connect'],
    allowedNetworks: ['192.0.2.0/24'],
    createdAt: NOW,
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
    lastUsedFrom: null,
    replacedBy: null,
    externalId: null,
    metadataBytes: null,
    lineageId: id,
    limits: NO_LIMITS,
    operatorLimits: NO_LIMITS,
    ...change,
  }
}

export function aSession(userId: string, change: Partial<Session> = {}): Session {
  return {
    id: newId(NOW),
    userId,
    appId: 'console',
    kind: 'api',
    createdAt: NOW,
    lastUsedAt: NOW,
    expiresAt: NOW + 90 * DAY,
    counter: 1,
    sealedSecret: 'sealed',
    retryKeys: [],
    endedAt: null,
    endedBy: null,
    network: '192.0.2.0/24',
    client: null,
    grant: null,
    authTime: NOW,
    ...change,
  }
}

export function anApp(change: Partial<App> = {}): App {
  return {
    ...DEFAULT_APP_SETTINGS,
    id: 'shop',
    name: 'Shop',
    firstParty: false,
    createdAt: NOW,
    coversFrom: NOW,
    ...change,
  }
}

export function aLink(change: Partial<MagicLink> = {}): MagicLink {
  const id = newId(NOW)
  return {
    id,
    tokenHash: `token of ${id}`,
    codeHash: `code of ${id}`,
    email: address('ada@example.com'),
    appId: 'console',
    createdAt: NOW,
    expiresAt: NOW + 5 * MINUTE,
    usedAt: null,
    codeTries: 0,
    locale: null,
    ...change,
  }
}

export function aMessage(change: Partial<OutboxMessage> = {}): OutboxMessage {
  return {
    id: newId(NOW),
    kind: 'test',
    recipient: address('ada@example.com'),
    userId: null,
    sealedContent: 'sealed',
    state: 'queued',
    attempts: 0,
    createdAt: NOW,
    nextAttemptAt: NOW,
    sendBefore: null,
    leasedUntil: null,
    settledAt: null,
    lastError: null,
    ...change,
  }
}

export function anEntry(
  userId: string,
  amount: number,
  change: Partial<LedgerEntry> = {},
): Omit<LedgerEntry, 'balanceAfter'> {
  const id = newId(NOW)
  return {
    id,
    userId,
    kind: amount < 0 ? 'charge' : 'trial_credit',
    amount,
    appId: null,
    description: 'an entry',
    cause: `cause ${id}`,
    keyId: null,
    lineageId: null,
    createdAt: NOW,
    ...change,
  }
}

export function anAuthorization(change: Partial<DeviceAuthorization> = {}): DeviceAuthorization {
  const id = newId(NOW)
  return {
    id,
    clientId: 'keyway-cli',
    deviceCodeHash: `device code of ${id}`,
    userCodeHash: `user code of ${id}`,
    ticketHash: `ticket of ${id}`,
    scopes: ['keys:create', 'agent:connect'],
    resource: null,
    deviceName: 'laptop',
    address: '192.0.2.1',
    network: '192.0.2.1',
    client: 'keyway-sdk/0.1.0',
    createdAt: NOW,
    expiresAt: NOW + 10 * MINUTE,
    pollInterval: 5 * SECOND,
    lastPolledAt: null,
    decision: null,
    decidedAt: null,
    userId: null,
    signInId: null,
    authTime: null,
    redeemedAt: null,
    sessionId: null,
    keyId: null,
    ...change,
  }
}

export function aSigningKey(change: Partial<SigningKey> = {}): SigningKey {
  const id = newId(NOW)
  return {
    id,
    publicKey: 'public',
    alg: 'EdDSA',
    sealedPrivateKey: 'sealed',
    createdAt: NOW,
    signsFrom: NOW,
    retiresAt: null,
    ...change,
  }
}

/**
 * Runs twenty calls concurrently, each in its own transaction, half of them on another node. On PostgreSQL they use
 * twenty connections.
 */
export async function race<Outcome>(
  opened: TestStorage,
  attempt: (tx: Transaction, number: number) => Promise<Outcome>,
): Promise<Outcome[]> {
  const nodes: Storage[] = [opened.storage, await opened.reopen()]
  return Promise.all(
    Array.from({ length: 20 }, (_, number) => nodes[number % 2]!.transaction(tx => attempt(tx, number))),
  )
}

/** The outcomes of the attempts that succeeded: those that are neither null nor false. */
export function winners<Outcome>(outcomes: Outcome[]): NonNullable<Outcome>[] {
  return outcomes.filter((outcome): outcome is NonNullable<typeof outcome> => Boolean(outcome))
}

/** Reads all pages of a list, two rows at a time. */
export async function readAll<Row>(
  list: (page: { limit: number; after: { at: number; id: string } | null }) => Promise<{
    rows: Row[]
    next: { at: number; id: string } | null
  }>,
): Promise<Row[]> {
  const allRows: Row[] = []
  let after: { at: number; id: string } | null = null
  do {
    const slice = await list({ limit: 2, after })
    allRows.push(...slice.rows)
    after = slice.next
  } while (after)
  return allRows
}
