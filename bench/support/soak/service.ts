import { readdirSync, statSync } from 'node:fs'
import pg from 'pg'
import { loadConfig } from '../../../packages/server/src/config.ts'
import { createLog } from '../../../packages/server/src/log.ts'
import { openServices } from '../../../packages/server/src/services.ts'
import { freePort } from '../../../packages/server/test/support/free-port.ts'
import { poolerMissing, startPooler } from '../../../packages/server/test/support/pooler.ts'
import { postgresDatabase, sqliteDatabase } from '../databases.ts'
import { SERVER_CORE } from '../machine.ts'
import { startKeyway } from '../processes.ts'
import type { Mailbox } from './mailbox.ts'
import { startTls, type TlsProxy } from './tls.ts'

export type SoakEngine = 'sqlite' | 'postgres'

export const ADMINISTRATOR = 'admin@example.com'
/** The app that introspects and charges; new accounts authorise it to charge. */
export const APP = 'console'
const METRICS_TOKEN = 'a-token-for-the-soak-0123456789'
/** A sixteenth of the default, so that sessions are refreshed often. */
const ACCESS_TOKEN_SECONDS = 56

const TLS_TITLES = { node: 'Node', caddy: 'Caddy' }

export interface SoakService extends AsyncDisposable {
  description: string
  origins: string[]
  appSecret: string
  /** Sizes by name: bytes, seconds, and numbers of files, resources and connections. */
  sizes(): Promise<Record<string, number>>
}

/**
 * Starts one node on SQLite, or two on PostgreSQL. If PgBouncer is installed, it is in front of PostgreSQL; only events
 * bypass it.
 *
 * @param tls what terminates TLS; null: clients use plain HTTP
 */
export async function startService(
  engine: SoakEngine,
  mailbox: Mailbox,
  tls: TlsProxy | null,
): Promise<SoakService> {
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await (engine === 'sqlite' ? sqliteDatabase(0) : postgresDatabase(0)))
  const appSecret = await newAppSecret(database.settings)
  const databaseUrl = database.settings.KEYWAY_DATABASE_URL
  const pooler = databaseUrl && !poolerMissing() ? await startPooler(databaseUrl) : null
  if (pooler) stack.use(pooler)
  const poolerSettings: Record<string, string> = pooler
    ? { KEYWAY_DATABASE_URL: pooler.url, KEYWAY_EVENTS_URL: databaseUrl!, KEYWAY_AUTO_MIGRATE: 'false' }
    : {}
  const ports = await Promise.all(Array.from({ length: engine === 'sqlite' ? 1 : 2 }, freePort))
  const tlsPorts = tls ? await startTls(tls, ports, stack) : null
  const publicUrl = tlsPorts ? `https://localhost:${tlsPorts[0]}` : `http://localhost:${ports[0]}`
  for (const port of ports) {
    const settings = {
      ...database.settings,
      ...poolerSettings,
      ...mailbox.settings,
      KEYWAY_PUBLIC_URL: publicUrl,
      KEYWAY_PORT: String(port),
      KEYWAY_ADMIN_EMAILS: ADMINISTRATOR,
      KEYWAY_ACCESS_TOKEN_SECONDS: String(ACCESS_TOKEN_SECONDS),
      KEYWAY_METRICS_TOKEN: METRICS_TOKEN,
      KEYWAY_MAGIC_LINK_LIMITS: '100000/day',
      KEYWAY_MAGIC_LINK_NETWORK_LIMITS: 'off',
      KEYWAY_KEY_CREATION_LIMITS: '1000000/day',
    }
    stack.use(await startKeyway(settings, { core: SERVER_CORE }))
  }
  const nodeOrigins = ports.map(port => `http://127.0.0.1:${port}`)
  const sizesOfDatabase = databaseUrl
    ? await postgresSizes(databaseUrl, stack)
    : () => sqliteSizes(database.file)
  const resources = stack.move()
  return {
    description: describe(engine, pooler !== null) + (tls ? ` with TLS by ${TLS_TITLES[tls]}` : ''),
    origins: tlsPorts?.map(port => `https://localhost:${port}`) ?? nodeOrigins,
    appSecret,
    async sizes() {
      const nodeSizes = await Promise.all(nodeOrigins.map((node, n) => sizesOf(node, n + 1)))
      return Object.assign({}, ...nodeSizes, await sizesOfDatabase())
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

function describe(engine: SoakEngine, isPooled: boolean): string {
  if (engine === 'sqlite') return 'one node on SQLite'
  return isPooled ? 'two nodes on PostgreSQL behind PgBouncer' : 'two nodes on PostgreSQL'
}

async function newAppSecret(settings: Record<string, string>): Promise<string> {
  const services = await openServices(loadConfig(settings), createLog('error'))
  const { secret } = await services.apps.newSecret(APP)
  await services.close()
  return secret
}

const NAMES_OF_METRICS: Record<string, string> = {
  process_resident_memory_bytes: 'resident memory, bytes',
  nodejs_heap_size_used_bytes: 'heap, bytes',
  process_open_fds: 'open files',
  nodejs_active_resources_total: 'active resources',
  nodejs_eventloop_lag_p99_seconds: 'event loop delay p99, s',
}

async function sizesOf(origin: string, node: number): Promise<Record<string, number>> {
  const read = async () => {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
    return (await fetch(`${origin}/metrics`, { headers })).text()
  }
  // Retried once, because a node may close the idle connection of the previous sample just as this request is sent.
  const page = await read().catch(read)
  return Object.fromEntries(
    page.split('\n').flatMap(line => {
      const [series = '', value] = line.split(' ')
      const name = NAMES_OF_METRICS[series]
      return name ? [[`node ${node}: ${name}`, Number(value)]] : []
    }),
  )
}

function sqliteSizes(file: string): Record<string, number> {
  const folder = file.slice(0, file.lastIndexOf('/'))
  const sizeOf = (name: string) => statSync(`${folder}/${name}`, { throwIfNoEntry: false })?.size ?? 0
  const journalBytes = readdirSync(`${folder}/journal`).reduce(
    (sum, name) => sum + sizeOf(`journal/${name}`),
    0,
  )
  return {
    'database, bytes': sizeOf('keyway.db'),
    'WAL, bytes': sizeOf('keyway.db-wal'),
    'journal, bytes': journalBytes,
  }
}

async function postgresSizes(url: string, stack: AsyncDisposableStack) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  stack.defer(() => client.end())
  return async () => {
    const { rows } = await client.query(`
      select pg_database_size(current_database())::float8 as database, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as wal,
        (select count(*)::int from pg_stat_activity where datname = current_database()) as connections`)
    const [{ database, wal, connections }] = rows
    return {
      'database, bytes': database,
      'WAL written, bytes': wal,
      'connections to PostgreSQL': connections,
    }
  }
}
