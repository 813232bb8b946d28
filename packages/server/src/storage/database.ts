import { sql } from 'kysely'
import type { MicroDollars } from '../billing/money.ts'
import type { Config } from '../config.ts'
import { type RowTransaction, withFacts } from '../endings/facts.ts'
import { lowBalances } from '../endings/webhook-events.ts'
import type { Event } from '../events.ts'
import type { Log } from '../log.ts'
import type { Storage, Transaction } from '../store.ts'
import { createAdministratorStore } from './administrators.ts'
import { createApiKeyStore } from './api-keys.ts'
import { createAppStore } from './apps.ts'
import { createAuditStore } from './audit.ts'
import { createAuthorizationCodeStore } from './authorization-codes.ts'
import { createBillingStore } from './billing.ts'
import { createClientAssertionStore } from './client-assertions.ts'
import { createConsentStore } from './consents.ts'
import { createDeviceAuthorizationStore } from './device-authorizations.ts'
import { createEmailChangeStore } from './email-changes.ts'
import { createEndingStore } from './endings.ts'
import { createDb, type Engine, type EngineTransaction, type EventsHealth } from './engine.ts'
import { createInboxStore } from './inbox.ts'
import { createInstanceStore } from './instance.ts'
import { createInvitationStore } from './invitations.ts'
import { createKeyAlertStore } from './key-alerts.ts'
import { createLeaseStore } from './limit-leases.ts'
import { createLocationStore } from './locations.ts'
import { createLogoutNoticeStore } from './logout-notices.ts'
import { createMagicLinkStore } from './magic-links.ts'
import { migrate } from './migrate.ts'
import { createOutboxStore } from './outbox.ts'
import { createPolicyStore } from './policies.ts'
import { createPresenceStore } from './presence.ts'
import { createQuotaStore } from './quotas.ts'
import { createRegisteredClientStore } from './registered-clients.ts'
import { createReplayStore } from './replay.ts'
import { createSecurityEventStore } from './security-events.ts'
import { createSessionStore } from './sessions.ts'
import { createSigningKeyStore } from './signing-keys.ts'
import type { Statements } from './statements.ts'
import { createStatisticsStore } from './statistics.ts'
import { createSuppressionStore } from './suppressions.ts'
import { createUsageStore } from './usage.ts'
import { createUserStore } from './users.ts'
import { createWebhookDeliveryStore } from './webhook-deliveries.ts'
import { createWebhookQueue, type WebhookQueue } from './webhook-queue.ts'
import { createWebhookStore } from './webhooks.ts'
import { createWrongCodeStore } from './wrong-codes.ts'

export type StorageConfig = Pick<Config, 'dataDir' | 'database' | 'events' | 'secrets' | 'autoMigrate'> & {
  /** Maximum number of connections in PostgreSQL's pool, without the one that receives events; tests use few. */
  poolSize?: number
  /** See `Config.lowBalance`. */
  lowBalance?: MicroDollars
  /** See `Config.hubMaxConnections`. */
  hubMaxConnections?: number
}

/** The stores without the wrapping of `withFacts`, so that their changes record no facts. */
type RowStores = Omit<RowTransaction, 'publish'>

export interface DatabaseStorage extends Storage {
  /** Also has the operations that the service may only call within a transaction. */
  readonly store: RowStores
  /** What is known about the delivery of events to this process: whether they arrive, and how quickly. */
  eventsHealth(): EventsHealth
  /** The engine on which the stores execute their statements, for backups and tests. */
  readonly engine: Engine
}

/**
 * Opens the database and brings its schema up to date.
 *
 * @throws CannotStart for a fault that the operator can fix, KeywayError `unavailable` if the database cannot serve
 * now, or any other error of the database unchanged
 */
export async function createStorage(config: StorageConfig, log: Log): Promise<DatabaseStorage> {
  const engine = await openEngine(config, log)
  try {
    await migrate(engine, config.autoMigrate, log)
  } catch (error) {
    await engine.close()
    throw engine.toStartError(error)
  }
  return createStorageOn(engine, config)
}

/** Creates the storage on an open engine, whose schema must be up to date. */
export function createStorageOn(
  engine: Engine,
  { hubMaxConnections, lowBalance }: Pick<StorageConfig, 'hubMaxConnections' | 'lowBalance'>,
): DatabaseStorage {
  const store = createStore({
    db: createDb(engine, engine.connection),
    atomically: work => engine.transaction(tx => work(createDb(engine, tx))),
    lookUp: (definition, key) => engine.lookUp(definition, key),
    binaryCollation: engine.binaryCollation,
    jsonElements: engine.jsonElements,
    hasIndex: engine.hasIndex,
    indexedBy: engine.indexedBy,
  })
  const queue = createWebhookQueue(engine.events, hubMaxConnections ?? 0)
  const webhooks = { queue, lowBalance: lowBalance ?? 0 }
  let closing: Promise<void> | undefined
  return {
    store,
    engine,
    events: engine.events,
    eventsHealth: () => engine.events.health(),
    async transaction(work, readBack) {
      let changesWebhooks = false
      const outcome = await engine.transaction(
        tx => {
          const publish = (event: Event) => {
            changesWebhooks ||= event.type === 'webhooks.changed'
            tx.publish(event)
          }
          return runWithWebhookEvents(engine, { execute: tx.execute, publish }, webhooks, work)
        },
        readBack && (() => readBack(store)),
      )
      // This process may not have received its own `webhooks.changed` yet.
      if (changesWebhooks) webhooks.queue.invalidateSubscribers()
      return outcome
    },
    runExclusive: engine.runExclusive,
    readClock: () => engine.readClock(),
    close: () => {
      closing ??= engine.close()
      return closing
    },
  }
}

/** Imports only the configured engine. */
async function openEngine({ database, events, secrets, poolSize }: StorageConfig, log: Log): Promise<Engine> {
  if (database.engine === 'sqlite') {
    const { openSqlite } = await import('./sqlite.ts')
    return openSqlite(database.file, log)
  }
  const { openPostgres } = await import('./postgres.ts')
  return openPostgres({ url: database.url, events, secrets, poolSize }, log)
}

/** Runs the work, then queues its webhook events, including those for balances that became low. */
async function runWithWebhookEvents<Outcome>(
  engine: Engine,
  tx: EngineTransaction,
  { queue, lowBalance }: { queue: WebhookQueue; lowBalance: MicroDollars },
  work: (tx: Transaction) => Promise<Outcome>,
): Promise<Outcome> {
  const transaction = toTransaction(engine, tx)
  const outcome = await work(transaction)
  const { announced, facts } = transaction
  const entries = facts.flatMap(fact =>
    fact.type === 'ledger' && fact.entry.kind === 'charge' ? [fact.entry] : [],
  )
  const events = [...announced, ...lowBalances(entries, lowBalance)]
  if (await queue.add(createDb(engine, tx), events)) tx.publish({ type: 'webhook.queued' })
  return outcome
}

function toTransaction(engine: Engine, tx: EngineTransaction) {
  const db = createDb(engine, tx)
  const store = createStore({
    db,
    binaryCollation: engine.binaryCollation,
    jsonElements: engine.jsonElements,
    indexedBy: engine.indexedBy,
    atomically: work => work(db),
    async lookUp(definition, key) {
      const { rows } =
        await sql`${sql.raw(definition.select(engine))} where ${sql.raw(definition.column)} = ${key}`.execute(
          db,
        )
      return rows[0]
    },
  })
  return withFacts({ ...store, publish: event => tx.publish(event) })
}

function createStore(statements: Statements): RowStores {
  return {
    usage: createUsageStore(statements),
    users: createUserStore(statements),
    billing: createBillingStore(statements),
    apiKeys: createApiKeyStore(statements),
    administrators: createAdministratorStore(statements),
    apps: createAppStore(statements),
    authorizationCodes: createAuthorizationCodeStore(statements),
    clientAssertions: createClientAssertionStore(statements),
    consents: createConsentStore(statements),
    logoutNotices: createLogoutNoticeStore(statements),
    registeredClients: createRegisteredClientStore(statements),
    deviceAuthorizations: createDeviceAuthorizationStore(statements),
    audit: createAuditStore(statements),
    emailChanges: createEmailChangeStore(statements),
    endings: createEndingStore(statements),
    inbox: createInboxStore(statements),
    instance: createInstanceStore(statements),
    invitations: createInvitationStore(statements),
    keyAlerts: createKeyAlertStore(statements),
    limitLeases: createLeaseStore(statements),
    magicLinks: createMagicLinkStore(statements),
    outbox: createOutboxStore(statements),
    policies: createPolicyStore(statements),
    presence: createPresenceStore(statements),
    locations: createLocationStore(statements),
    quotas: createQuotaStore(statements),
    replay: createReplayStore(statements),
    securityEvents: createSecurityEventStore(statements),
    sessions: createSessionStore(statements),
    signingKeys: createSigningKeyStore(statements),
    statistics: createStatisticsStore(statements),
    suppressions: createSuppressionStore(statements),
    webhookDeliveries: createWebhookDeliveryStore(statements),
    webhooks: createWebhookStore(statements),
    wrongCodes: createWrongCodeStore(statements),
  }
}
