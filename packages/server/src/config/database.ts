import { resolve } from 'node:path'
import { isLoopbackHost } from '../network.ts'
import type { Config } from './config-type.ts'
import { Mistake } from './mistakes.ts'
import type { Parser } from './values.ts'

export const database: Parser<Config['database']> = text => {
  const file = /^sqlite:(?:\/\/)?(.+)$/s.exec(text)?.[1]
  if (file === ':memory:') throw new Mistake('cannot be :memory:, which forgets every account at the end')
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
    throw new Mistake('is no address: percent-encode special characters of the user and the password')
  return text
}

/** Contradictions between the database and the event carrier. */
export function databaseMistakes(config: Config): string[] {
  const isRefused = config.database.engine === 'sqlite' && config.events.kind !== 'in-process'
  return isRefused
    ? [
        'KEYWAY_EVENTS_URL joins several nodes, but SQLite serves one. Leave it out, or use PostgreSQL. ' +
          'Example: KEYWAY_DATABASE_URL=postgres://keyway:password@db.example.com/keyway',
      ]
    : []
}

/** One warning for each unencrypted connection to another machine. */
export function databaseWarnings(config: Config): string[] {
  return unencryptedConnections(config).map(({ warning }) => warning)
}

/**
 * Those of these warnings whose host name has no dot. Such names mostly belong to a container network (Compose,
 * Kubernetes), which may be private; but a DNS search domain may resolve them elsewhere, so the operator is warned.
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
  const isApart = events.kind === 'postgres' && database.engine === 'postgres' && events.url !== database.url
  if (isApart) connections.push({ url: events.url, setting: 'KEYWAY_EVENTS_URL', advice: POSTGRES_ADVICE })
  if (events.kind === 'redis')
    connections.push({ url: events.url, setting: 'KEYWAY_EVENTS_URL', advice: REDIS_ADVICE })
  return connections
    .filter(({ url }) => isUnencrypted(url))
    .map(({ url, setting, advice }) => ({
      url,
      warning: `${setting} leads to another machine without TLS: ${advice}`,
    }))
}

const REDIS_ADVICE =
  'its password travels readable, and whoever is between can hold events back. Use rediss://.'
const POSTGRES_ADVICE =
  'its password and all rows travel readable. Add ?sslmode=verify-full (and sslrootcert=FILE for an own authority).'
/** The modes of libpq that accept a connection without TLS. */
const MODES_WITHOUT_TLS = ['disable', 'allow', 'prefer', null]

/** Whether traffic to the URL is unencrypted: another machine, without TLS. */
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
