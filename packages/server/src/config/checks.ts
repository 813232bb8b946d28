import type { Config } from '../config.ts'
import { isLoopbackHost } from '../network.ts'
import type { Values } from './settings.ts'

/** Settings that are each well formed and cannot stand together: what is wrong, each with an example. */
export function contradictions(config: Config, values: Values): string[] {
  const mistakes: string[] = []
  const insecure = values.KEYWAY_INSECURE_HTTP
  if (isPlainHttp(config.publicUrl) && !insecure)
    mistakes.push(
      'KEYWAY_PUBLIC_URL must be https unless its host is loopback, since keys and tokens travel over it. ' +
        'Example: KEYWAY_PUBLIC_URL=https://keyway.example.com (or KEYWAY_INSECURE_HTTP=true where TLS is truly elsewhere)',
    )
  const isOwnPage = new URL(config.verifyUrl).origin === config.publicUrl
  if (isPlainHttp(config.verifyUrl) && !isOwnPage)
    mistakes.push(
      'KEYWAY_VERIFY_URL must be https unless its host is loopback, since it receives live tokens. ' +
        'Example: KEYWAY_VERIFY_URL=https://app.example.com/verify',
    )
  if (config.mail.kind === 'inbox' && !isLoopbackHost(new URL(config.publicUrl).hostname))
    mistakes.push(
      'KEYWAY_MAIL_URL is inbox:, which shows every mail to whoever reaches it, but KEYWAY_PUBLIC_URL is not loopback. ' +
        'Example: KEYWAY_MAIL_URL=smtp://user:password@smtp.example.com:587',
    )
  if (config.mail.kind !== 'inbox' && values.KEYWAY_SUPPORT_EMAIL === undefined)
    mistakes.push(
      'KEYWAY_SUPPORT_EMAIL is missing: every mail names whom to ask. Example: KEYWAY_SUPPORT_EMAIL=support@example.com',
    )
  if (config.database.engine === 'postgres' && config.secrets.length === 0)
    mistakes.push(
      'KEYWAY_SECRET is missing: with PostgreSQL every node needs the same one. ' +
        'Example: KEYWAY_SECRET_FILE=/run/secrets/keyway, made with: openssl rand -base64 32',
    )
  if (config.database.engine === 'sqlite' && config.events.kind !== 'in-process')
    mistakes.push(
      'KEYWAY_EVENTS_URL joins several nodes, but SQLite serves one. Leave it out, or use PostgreSQL. ' +
        'Example: KEYWAY_DATABASE_URL=postgres://keyway:password@db.example.com/keyway',
    )
  if (config.metricsPort && config.metricsPort === config.port)
    mistakes.push('KEYWAY_METRICS_PORT must differ from KEYWAY_PORT. Example: KEYWAY_METRICS_PORT=9090')
  return mistakes
}

/** What is allowed and yet deserves a word at start. */
export function configWarnings(config: Config): string[] {
  const warnings: string[] = []
  const { protocol, hostname } = new URL(config.publicUrl)
  if (protocol === 'http:' && !isLoopbackHost(hostname))
    warnings.push('KEYWAY_PUBLIC_URL is http: links, keys and tokens travel readable. Put TLS before it.')
  if (config.mail.kind !== 'inbox' && config.mailFrom.address.endsWith('@localhost'))
    warnings.push(
      'KEYWAY_MAIL_FROM is still at localhost: most mail servers refuse it. Set KEYWAY_MAIL_FROM=Keyway <no-reply@example.com>.',
    )
  return warnings
}

function isPlainHttp(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !isLoopbackHost(hostname)
}
