import { resolve } from 'node:path'
import { isLoopbackHost } from '../network.ts'
import type { Config } from './config-type.ts'
import { Mistake } from './mistakes.ts'
import type { Parser } from './values.ts'

export const database: Parser<Config['database']> = text => {
  const file = /^sqlite:(?:\/\/)?(.+)$/s.exec(text)?.[1]
  if (file === ':memory:') throw new Mistake('cannot be :memory:, which loses every account at the exit')
  if (file) return { engine: 'sqlite', file: resolve(file) }
  return { engine: 'postgres', url: postgresUrl(text, 'sqlite:PATH or postgres://…') }
}

export const events: Parser<Config['events']> = text => {
  if (/^rediss?:\/\//.test(text) && URL.canParse(text)) return { kind: 'redis', url: text }
  return { kind: 'postgres', url: postgresUrl(text, 'redis://… or postgres://…') }
}

function postgresUrl(text: string, wanted: string): string {
  if (!/^postgres(ql)?:\/\//.test(text)) throw new Mistake(`must be ${wanted}`)
  if (!URL.canParse(text))
    throw new Mistake('is not a URL: percent-encode special characters of the user and the password')
  return text
}

/** A message if KEYWAY_EVENTS_URL, which connects several nodes, is set with SQLite, which supports only one. */
export function databaseMistakes(config: Config): string[] {
  const isRefused = config.database.engine === 'sqlite' && config.events.kind !== 'in-process'
  return isRefused
    ? [
        'KEYWAY_EVENTS_URL is for several nodes, but SQLite supports only one. Remove it, or use PostgreSQL. ' +
          'Example: KEYWAY_DATABASE_URL=postgres://keyway:password@db.example.com/keyway',
      ]
    : []
}

/** One warning for each unencrypted connection to another machine. */
export function databaseWarnings(config: Config): string[] {
  return unencryptedConnections(config).map(({ warning }) => warning)
}

/**
 * The warnings of `databaseWarnings` about host names without a dot. Such names are usually in a private container
 * network (Compose, Kubernetes); but a DNS search domain may resolve them elsewhere, so the operator is still warned.
 */
export function containerWarnings(config: Config): string[] {
  return unencryptedConnections(config).flatMap(({ url, warning }) =>
    /^[^.:]+$/.test(new URL(url).hostname) ? [warning] : [],
  )
}

function unencryptedConnections({ database, events }: Config): { url: string; warning: string }[] {
  const connections: { url: string; setting: string; advice: string }[] = []
  if (database.engine === 'postgres')
    connections.push({ url: database.url, setting: 'KEYWAY_DATABASE_URL', advice: POSTGRES_ADVICE })
  const isSeparate =
    events.kind === 'postgres' && database.engine === 'postgres' && events.url !== database.url
  if (isSeparate) connections.push({ url: events.url, setting: 'KEYWAY_EVENTS_URL', advice: POSTGRES_ADVICE })
  if (events.kind === 'redis')
    connections.push({ url: events.url, setting: 'KEYWAY_EVENTS_URL', advice: REDIS_ADVICE })
  return connections
    .filter(({ url }) => isUnencrypted(url))
    .map(({ url, setting, advice }) => ({
      url,
      warning: `${setting} connects to another machine without TLS: ${advice}`,
    }))
}

const REDIS_ADVICE =
  'its password is sent unencrypted, and an attacker in between can withhold events. Use rediss://.'
const POSTGRES_ADVICE =
  'its password and all rows are sent unencrypted. Add ?sslmode=verify-full (and sslrootcert=FILE for a private CA).'
/** The modes of libpq that accept a connection without TLS. */
const MODES_WITHOUT_TLS = ['disable', 'allow', 'prefer', null]

/** Whether a client with this URL connects to another machine without TLS. */
function isUnencrypted(url: string): boolean {
  const { protocol, hostname, searchParams } = new URL(url)
  if (protocol === 'rediss:') return false
  // A Unix socket is a path, percent-encoded as the host or given as a parameter.
  const host = searchParams.get('host') ?? decodeURIComponent(hostname)
  if (host === '' || host.startsWith('/') || isLoopbackHost(host)) return false
  if (protocol === 'redis:') return true
  const isTls = ['1', 'true'].includes(searchParams.get('ssl') ?? '')
  return !isTls && MODES_WITHOUT_TLS.includes(searchParams.get('sslmode'))
}
