import { createDeletions } from './account-changes/deletions.ts'
import { createEmailChanges } from './account-changes/email-changes.ts'
import { AGENT_TOKEN_SECONDS, createAgentTokens, hubAudience } from './agent-tokens/agent-tokens.ts'
import { createApiKeys } from './api-keys/api-keys.ts'
import { createImportedKeys } from './api-keys/imported-keys.ts'
import { createKeyAlerts } from './api-keys/key-alerts.ts'
import { alertingLimiter } from './api-keys/limit-alerts.ts'
import { createApps } from './apps/apps.ts'
import { createAudit } from './audit/audit.ts'
import { createAuditKeeping } from './audit/audit-keeping.ts'
import type { Authorizations } from './authorizations/authorizations.ts'
import { type Journal, type JournalDeps, openJournal } from './backup/journal.ts'
import { serviceIdOf } from './backup/journal-entry.ts'
import { createJournalWriter } from './backup/journal-writer.ts'
import { createAccounts } from './billing/accounts.ts'
import { createCredits } from './billing/credits.ts'
import { createChangeLimits } from './change-limits.ts'
import { createClients } from './clients/clients.ts'
import { type Clock, createClock, type Instant } from './clock.ts'
import { type Config, ConfigError } from './config.ts'
import { createConsents } from './consents/consents.ts'
import { createDeviceAuthorizations } from './device-authorizations/device-authorizations.ts'
import { createDeviceKeys } from './device-authorizations/device-keys.ts'
import { createDeviceTokens } from './device-authorizations/device-tokens.ts'
import type { Fact } from './endings/fact.ts'
import { whyNotWritable } from './folders.ts'
import { createInvitations } from './invitations/invitations.ts'
import { createKnownNetworks } from './known-networks.ts'
import { createLocalizations } from './languages/localization.ts'
import { createKeyLimiter } from './limits/limits.ts'
import { createLog, type Log } from './log.ts'
import { createMagicLinks } from './magic-links/magic-links.ts'
import { createSignUpRule } from './magic-links/sign-up.ts'
import { printedLink } from './mail/inbox.ts'
import { createMailer } from './mail/mailer.ts'
import { createMailWriter } from './mail/templates/mail-writer.ts'
import { createDispatcher } from './outbox/dispatcher.ts'
import { createOutbox } from './outbox/outbox.ts'
import { createSuppressions } from './outbox/suppressions.ts'
import { createPolicies } from './policies/policies.ts'
import { createSecrets, SealError, type Secrets } from './secrets.ts'
import { logSecurityEvents } from './security-events/log.ts'
import { createSessions } from './sessions/sessions.ts'
import { createJwt } from './signing-keys/jwt.ts'
import { createSigner } from './signing-keys/signer.ts'
import { createSigningKeys } from './signing-keys/signing-keys.ts'
import { createStatistics, type StatisticsCounter } from './statistics/statistics.ts'
import { createStorage, type DatabaseStorage } from './storage/database.ts'
import type { Storage } from './store.ts'
import { createMeter } from './usage/meter.ts'
import { createUsageReports } from './usage/reports.ts'
import { createListedAdministrators } from './users/listed-administrators.ts'
import { openPepper } from './users/trial-credit.ts'
import { createUsers } from './users/users.ts'
import type { Webhooks } from './webhooks/webhooks.ts'

/** All operations on one opened database, as the server, the commands and the tests use them. */
export type Services = Awaited<ReturnType<typeof openServices>>

/**
 * Opens the database and creates all services over it. Opens no port and sends no mail.
 *
 * @param readClock reads the time that the clock follows; by default that of the database
 * @throws CannotStart where the database does not fit this program or its settings (too new, not migrated, sealed by
 *   another secret); KeywayError `unavailable`
 */
export async function openServices(
  config: Config,
  log: Log = createLog(config.logLevel),
  readClock: (storage: Storage, config: Config) => Promise<Instant> = storage => storage.readClock(),
) {
  const storage = await createStorage(config, log)
  try {
    const clock = createClock(storage.engine.clockReference)
    await clock.synchronize(() => readClock(storage, config))
    const secrets = createSecrets(config.secrets)
    const serviceId = serviceIdOf(await openPepper(storage, secrets))
    const journal = await journalOf(config, { clock, secrets, serviceId })
    const services = compose(config, log, { storage, clock, secrets, serviceId, journal })
    await Promise.all([services.signingKeys.load(), services.policies.load(), services.imported.load()])
    return services
  } catch (error) {
    await storage.close()
    throw error instanceof SealError ? toSecretMistake(error) : error
  }
}

function toSecretMistake({ message }: SealError): ConfigError {
  return new ConfigError([
    `KEYWAY_SECRET does not fit this database: ${message}. Restore the secret that the database was created with.`,
  ])
}

async function journalOf(config: Config, deps: JournalDeps): Promise<Journal | null> {
  const folder = config.journalDir
  if (folder === null) return null
  return openJournal(folder, deps).catch(error => throwJournalMistake(folder, error))
}

function throwJournalMistake(folder: string, error: NodeJS.ErrnoException): never {
  if (error.syscall === undefined) throw error
  throw new ConfigError([
    `KEYWAY_JOURNAL_DIR ${JSON.stringify(folder)} cannot be used: ${whyNotWritable(error)}. Example: KEYWAY_JOURNAL_DIR=/var/lib/keyway/journal`,
  ])
}

export interface Resources {
  /** The database without wrappers; `compose` adds the journal and the log of security events. */
  storage: DatabaseStorage
  clock: Clock
  secrets: Secrets
  /** Null: no journal is written. */
  journal: Journal | null
}

/**
 * Creates all services, in the order of their dependencies, over a storage that also writes the journal and the log of
 * security events.
 */
export function compose<Base extends Resources>(config: Config, log: Log, baseResources: Base) {
  const { publicUrl } = config
  const statistics = createStatistics(baseResources)
  const resources = { ...baseResources, storage: withJournalAndLog(baseResources, log, statistics) }
  const meter = createMeter({ ...resources, log, onCounted: statistics.countUsage })
  const audit = createAudit(resources)
  const { adminEmails } = config
  const listedAdministrators = createListedAdministrators({ ...resources, audit, log, adminEmails })
  const changeLimits = createChangeLimits(resources)
  const knownNetworks = createKnownNetworks(resources.clock)
  const sharedDeps = {
    ...resources,
    log,
    publicUrl,
    meter,
    changeLimits,
    audit,
    listed: listedAdministrators,
    knownNetworks,
  }
  const signingKeys = createSigningKeys({
    ...sharedDeps,
    longestTokenSeconds: Math.max(config.accessTokenSeconds, AGENT_TOKEN_SECONDS),
    reloadInterval: resources.storage.engine.pollInterval,
  })
  const signer = createSigner(log)
  const jwt = createJwt({ ...sharedDeps, signingKeys, signer, issuer: publicUrl })
  const outbox = createOutbox(sharedDeps)
  const suppressions = createSuppressions(sharedDeps)
  const users = createUsers(sharedDeps)
  const accounts = createAccounts(sharedDeps)
  const apps = createApps({
    ...sharedDeps,
    ownAudiences: [publicUrl, hubAudience(publicUrl)],
    ensureKey: signingKeys.currentOf,
  })
  const policies = createPolicies({
    ...sharedDeps,
    settings: config,
    reloadInterval: resources.storage.engine.pollInterval,
  })
  const policy = policies.current
  const keyAlerts = createKeyAlerts({ ...sharedDeps, outbox })
  const limiterWithoutAlerts = createKeyLimiter({
    clock: resources.clock,
    store: resources.storage.store,
    policy,
    whenCutOff: config.limitsWhenCutOff,
  })
  const limiter = alertingLimiter(limiterWithoutAlerts, keyAlerts)
  const importedKeys = createImportedKeys({
    ...sharedDeps,
    reloadInterval: resources.storage.engine.pollInterval,
  })
  const apiKeys = createApiKeys({
    ...sharedDeps,
    imported: importedKeys,
    outbox,
    alerts: keyAlerts,
    limiter,
    policies,
    maxActiveKeys: config.maxActiveKeys,
    creationLimits: config.keyCreationLimits,
  })
  const agentTokens = createAgentTokens({
    ...sharedDeps,
    apiKeys,
    limiter,
    jwt,
    exchangeLimits: config.exchangeLimits,
  })
  const sessions = createSessions({ ...sharedDeps, jwt, outbox, lifetimes: config })
  let authorizations: Promise<Authorizations> | undefined
  let webhooks: Promise<Webhooks> | undefined
  const clients = createClients({ ...sharedDeps, config })
  const maySignUp = createSignUpRule({ ...sharedDeps, policies })
  const invitations = createInvitations({ ...sharedDeps, outbox })
  const magicLinks = createMagicLinks({
    ...sharedDeps,
    policies,
    maySignUp,
    invitations,
    outbox,
    sessions,
    verifyUrl: config.verifyUrl,
    limits: config.magicLinkLimits,
    networkLimits: config.magicLinkNetworkLimits,
  })
  const emailChanges = createEmailChanges({
    ...sharedDeps,
    outbox,
    policies,
    limits: config.magicLinkLimits,
    networkLimits: config.magicLinkNetworkLimits,
  })
  const deviceAuthorizations = createDeviceAuthorizations(sharedDeps)
  const deviceTokens = createDeviceTokens({ ...sharedDeps, sessions, deviceAuthorizations })
  const deviceKeys = createDeviceKeys({ ...sharedDeps, outbox, apiKeys, policies })
  return {
    ...resources,
    config,
    knownNetworks,
    localizations: createLocalizations(config.texts),
    log,
    meter,
    statistics,
    usage: createUsageReports(resources),
    signingKeys,
    signer,
    jwt,
    outbox,
    suppressions,
    users,
    audit,
    listed: listedAdministrators,
    changeLimits,
    auditKeeping: createAuditKeeping({ ...sharedDeps, auditDays: config.auditDays }),
    accounts,
    credits: createCredits(sharedDeps),
    apps,
    deviceAuthorizations,
    deviceKeys,
    deviceTokens,
    apiKeys,
    limiter,
    policies,
    imported: importedKeys,
    agentTokens,
    sessions,
    magicLinks,
    maySignUp,
    invitations,
    emailChanges,
    deletions: createDeletions({ ...sharedDeps, outbox }),
    consents: createConsents(sharedDeps),
    clients,
    /** Loaded on first use, since only sign-in to apps needs it. */
    authorizations() {
      authorizations ??= import('./authorizations/authorizations.ts').then(({ createAuthorizations }) =>
        createAuthorizations({ ...sharedDeps, jwt, sessions, findClient: clients.find }),
      )
      return authorizations
    },
    /** Loaded on first use, since only administrators need it. */
    webhooks() {
      const privateNetworks = config.webhookPrivateNetworks
      webhooks ??= Promise.all([import('./webhooks/webhooks.ts'), import('./outgoing/outgoing.ts')]).then(
        ([{ createWebhooks }, { createOutgoing }]) =>
          createWebhooks({ ...sharedDeps, privateNetworks, call: createOutgoing(privateNetworks) }),
      )
      return webhooks
    },
    async close() {
      await signer.close()
      await resources.storage.close()
    },
  }
}

/** The storage, without the statements that only a transaction may use. */
export type ServiceStorage = Storage & Omit<DatabaseStorage, keyof Storage>

/**
 * Wraps a storage: every transaction writes its facts to the journal and the log, after its commit and before it
 * returns, so everything that was confirmed to a client is in the journal. A retried transaction starts with no facts.
 */
function withJournalAndLog(
  { storage, clock, journal }: Resources,
  log: Log,
  statistics: Pick<StatisticsCounter, 'countFacts'>,
): ServiceStorage {
  const writeJournal = journal && createJournalWriter({ journal, store: storage.store, clock, log })
  return {
    ...storage,
    async transaction(work, readBack) {
      let facts: readonly Fact[] = []
      const outcome = await storage.transaction(tx => {
        facts = tx.facts
        return work(tx)
      }, readBack)
      await writeJournal?.(facts)
      logSecurityEvents(log, facts)
      statistics.countFacts(facts)
      return outcome
    },
    async close() {
      await journal?.close()
      await storage.close()
    },
  }
}

/**
 * Creates the mailer and the dispatcher of queued mail. `announce` is called with a line for every mail with a link
 * that goes to the local inbox.
 */
export async function createMail(services: Services, announce?: (line: string) => void, nodeId?: string) {
  const { config, log } = services
  const mailer = await createMailer(config.mail, {
    ...services,
    from: config.mailFrom,
    announce: mail => announce?.(printedLink(mail)),
  })
  const writeMail = createMailWriter({
    localizations: services.localizations,
    productName: config.mailFrom.name,
    supportEmail: config.supportEmail,
    publicUrl: config.publicUrl,
    brand: config.brand,
  })
  const onSettled = services.statistics.countMail
  return {
    mailer,
    dispatcher: createDispatcher({ ...services, nodeId, mailer, write: writeMail, log, onSettled }),
  }
}
