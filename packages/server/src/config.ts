import { brandOf } from './config/brand.ts'
import type { Config } from './config/config-type.ts'
import { databaseMistakes, databaseWarnings } from './config/database.ts'
import { derivedDefaults } from './config/derived-defaults.ts'
import { readSettings } from './config/environment.ts'
import { secretMistakes } from './config/keyway-secret.ts'
import { mailMistakes, mailWarnings } from './config/mail.ts'
import { ConfigError } from './config/mistakes.ts'
import type { Values } from './config/settings.ts'
import { textsOf } from './config/texts.ts'
import { urlMistakes, urlWarnings } from './config/urls.ts'

export type { Config } from './config/config-type.ts'
export { containerWarnings } from './config/database.ts'
export { loadOrCreateSecret } from './config/keyway-secret.ts'
export { ConfigError } from './config/mistakes.ts'

/**
 * Parses the settings from the environment. Reads the files that settings name (secrets as `NAME_FILE`, images, texts)
 * and writes none. If no secret is given and the database is SQLite, `secrets` is empty; `loadOrCreateSecret` then
 * loads or creates it.
 *
 * @throws ConfigError that lists all invalid settings, each with an example and never with the value of a secret
 */
export function loadConfig(environment: NodeJS.ProcessEnv): Config {
  const { values, mistakes } = readSettings(environment)
  const { brand, mistakes: brandMistakes } = brandOf(values)
  const { texts, mistakes: textMistakes } = textsOf(values.KEYWAY_TEXTS)
  const config = { ...assemble(values), brand, texts }
  mistakes.push(...brandMistakes, ...textMistakes, ...contradictions(config, values))
  if (mistakes.length > 0) throw new ConfigError(mistakes)
  return config
}

/** Parses the environment of this process; nothing else reads `process.env`. */
export function loadConfigOfProcess(): Config {
  return loadConfig(process.env)
}

/** Warnings about allowed but risky settings: printed at start and by `check-config` and `doctor`. */
export function configWarnings(config: Config): string[] {
  return [...urlWarnings(config), ...mailWarnings(config), ...databaseWarnings(config)]
}

function assemble(values: Values): Omit<Config, 'brand' | 'texts'> {
  return {
    ...derivedDefaults(values),
    host: values.KEYWAY_HOST,
    port: values.KEYWAY_PORT,
    dataDir: values.KEYWAY_DATA_DIR,
    secrets: values.KEYWAY_SECRET ?? [],
    mail: values.KEYWAY_MAIL_URL,
    mailHookSecret: values.KEYWAY_MAIL_HOOK_SECRET ?? null,
    mailFrom: values.KEYWAY_MAIL_FROM,
    adminEmails: values.KEYWAY_ADMIN_EMAILS ?? [],
    auditDays: values.KEYWAY_AUDIT_DAYS,
    magicLinkLimits: values.KEYWAY_MAGIC_LINK_LIMITS,
    magicLinkNetworkLimits: values.KEYWAY_MAGIC_LINK_NETWORK_LIMITS,
    failureLimits: values.KEYWAY_FAILURE_LIMITS,
    accessTokenSeconds: values.KEYWAY_ACCESS_TOKEN_SECONDS,
    refreshIdleSeconds: values.KEYWAY_REFRESH_IDLE_SECONDS,
    sessionSeconds: values.KEYWAY_SESSION_SECONDS,
    refreshGraceSeconds: values.KEYWAY_REFRESH_GRACE_SECONDS,
    trustedProxies: values.KEYWAY_TRUSTED_PROXIES ?? [],
    corsOrigins: values.KEYWAY_CORS_ORIGINS ?? [],
    clientRegistration: values.KEYWAY_CLIENT_REGISTRATION,
    clientMetadataDocuments: values.KEYWAY_CLIENT_METADATA_DOCUMENTS,
    webhookPrivateNetworks: values.KEYWAY_WEBHOOK_PRIVATE_NETWORKS ?? [],
    lowBalance: values.KEYWAY_LOW_BALANCE,
    maxActiveKeys: values.KEYWAY_MAX_ACTIVE_KEYS,
    exchangeLimits: values.KEYWAY_EXCHANGE_LIMITS,
    keyCreationLimits: values.KEYWAY_KEY_CREATION_LIMITS,
    keyLimits: values.KEYWAY_KEY_LIMITS ?? [],
    keyDefaults: values.KEYWAY_KEY_DEFAULT_LIMITS ?? [],
    personLimits: values.KEYWAY_PERSON_LIMITS ?? [],
    limitsWhenCutOff: values.KEYWAY_LIMITS_WHEN_CUT_OFF,
    hubMaxConnections: values.KEYWAY_HUB_MAX_CONNECTIONS,
    hubDeliveries: values.KEYWAY_HUB_DELIVERIES,
    hubDeliveryMib: values.KEYWAY_HUB_DELIVERY_MIB,
    metricsPort: values.KEYWAY_METRICS_PORT ?? null,
    metricsToken: values.KEYWAY_METRICS_TOKEN ?? null,
    autoMigrate: values.KEYWAY_AUTO_MIGRATE,
    logLevel: values.KEYWAY_LOG_LEVEL,
  }
}

/** A message for each pair of well-formed settings that contradict each other. */
function contradictions(config: Config, values: Values): string[] {
  const mistakes = [
    ...urlMistakes(config, values),
    ...mailMistakes(config, values),
    ...secretMistakes(config),
    ...databaseMistakes(config),
    ...processMistakes(config),
  ]
  if (config.metricsPort && config.metricsPort === config.port)
    mistakes.push('KEYWAY_METRICS_PORT must differ from KEYWAY_PORT. Example: KEYWAY_METRICS_PORT=9090')
  return mistakes
}

/** Several processes need a database that they can share, and a port that they know before they start. */
function processMistakes({ processes, database, port }: Config): string[] {
  if (processes === 1) return []
  const mistakes: string[] = []
  if (database.engine === 'sqlite')
    mistakes.push(
      'KEYWAY_PROCESSES above 1 needs PostgreSQL: SQLite supports one process. Set KEYWAY_PROCESSES=1, or KEYWAY_DATABASE_URL. Example: KEYWAY_DATABASE_URL=postgres://keyway:password@db.example.com/keyway',
    )
  if (port === 0)
    mistakes.push('KEYWAY_PROCESSES above 1 needs a KEYWAY_PORT other than 0. Example: KEYWAY_PORT=8080')
  return mistakes
}
