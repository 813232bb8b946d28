import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { freePort } from './free-port.ts'
import { until } from './patience.ts'
import { quickFolder } from './quick-folder.ts'

/** The environment variable with the URL of the run's cluster, set for the test processes. */
export const POSTGRES_URL_VARIABLE = 'KEYWAY_TEST_POSTGRES_URL'

/** A temporary PostgreSQL server, removed with the process that started it. */
export interface Cluster {
  /** URL of the maintenance database; see `databaseUrl` for others. */
  url: string
  stop(): Promise<void>
}

/** The folder with `initdb` and `postgres`, or null where PostgreSQL is not installed. */
export function findPostgresBinaries(): string | null {
  const debianFolder = '/usr/lib/postgresql'
  const versions = existsSync(debianFolder)
    ? readdirSync(debianFolder).sort((a, b) => Number(b) - Number(a))
    : []
  const folders = [
    ...versions.map(version => join(debianFolder, version, 'bin')),
    ...(process.env.PATH ?? '').split(delimiter),
  ]
  return (
    folders.find(folder => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres'))) ?? null
  )
}

export interface ClusterOptions {
  /** For tests with crashes; without it the cluster is several times faster. */
  fsync?: boolean
  /** Where its folder is made; by default in memory, or with `fsync` on a disk. */
  root?: string
  /** Further settings, `name=value`, which override those of all tests. */
  settings?: readonly string[]
}

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const binaries = findPostgresBinaries()
  if (!binaries) throw new Error('no PostgreSQL binaries on this machine')
  const identity = unprivilegedIdentity()
  const root = options.root ?? (options.fsync ? tmpdir() : quickFolder())
  const folder = mkdtempSync(join(root, 'keyway-postgres-'))
  if (identity.uid !== undefined) chownSync(folder, identity.uid, identity.gid!)
  const initdb = spawnSync(
    join(binaries, 'initdb'),
    ['-D', join(folder, 'data'), '-U', 'keyway', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--locale=C'],
    { ...identity, encoding: 'utf8', cwd: folder },
  )
  if (initdb.status !== 0) throw new Error(`initdb failed: ${initdb.stderr}`)
  const port = await freePort()
  const server = spawnGuarded(binaries, folder, port, options, identity)
  const url = `postgres://keyway@127.0.0.1:${port}/postgres`
  await untilReady(url)
  return {
    url,
    async stop() {
      if (server.exitCode !== null) return
      const exited = new Promise(resolve => server.once('exit', resolve))
      server.ref()
      server.stdin!.end()
      await exited
    },
  }
}

/** The user to run PostgreSQL as, since it refuses to run as root; empty if this process does not run as root. */
export function unprivilegedIdentity(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  for (const name of ['postgres', 'nobody']) {
    const uidResult = spawnSync('id', ['-u', name], { encoding: 'utf8' })
    const gidResult = spawnSync('id', ['-g', name], { encoding: 'utf8' })
    if (uidResult.status === 0 && gidResult.status === 0)
      return { uid: Number(uidResult.stdout), gid: Number(gidResult.stdout) }
  }
  throw new Error('PostgreSQL does not run as root, and there is no user postgres or nobody')
}

/**
 * Starts the server under a shell that waits for the end of its standard input, which closes however this process ends,
 * even by SIGKILL. The shell then stops the server and removes the folder.
 */
function spawnGuarded(
  binaries: string,
  folder: string,
  port: number,
  { fsync = false, settings: further = [] }: ClusterOptions,
  identity: { uid?: number; gid?: number },
): ChildProcess {
  const settings = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    'max_connections=400',
    'shared_buffers=32MB',
    'autovacuum=off', // the databases exist for seconds
    'log_min_messages=fatal',
    ...(fsync ? [] : ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']),
    ...further,
  ].map(setting => `-c ${setting}`)
  const script = `"${join(binaries, 'postgres')}" -D "${folder}/data" ${settings.join(' ')} </dev/null & server=$!
cat >/dev/null; kill -QUIT $server; wait $server; rm -rf "${folder}"`
  const child = spawn('sh', ['-c', script], {
    ...identity,
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  child.unref()
  ;(child.stdin as unknown as { unref(): void }).unref()
  return child
}

async function untilReady(url: string): Promise<void> {
  await until('PostgreSQL starts', () =>
    withClient(url, client => client.query('select 1')).then(
      () => true,
      () => false,
    ),
  )
}

let ownCluster: Promise<Cluster> | undefined

/** The URL of the test run's cluster, or of one that this process starts. */
export async function clusterUrl(): Promise<string> {
  const sharedUrl = process.env[POSTGRES_URL_VARIABLE]
  if (sharedUrl) return sharedUrl
  ownCluster ??= startCluster()
  return (await ownCluster).url
}

/** For connections, locks and statements. The service's two to six seconds are too few on a busy machine. */
const TIMEOUT_SECONDS = 20
const MILLISECOND_PARAMETERS = [
  'lock_timeout',
  'statement_timeout',
  'query_timeout',
  'idle_in_transaction_session_timeout',
]

export function databaseUrl(cluster: string, database: string): string {
  const url = new URL(cluster)
  url.pathname = `/${database}`
  url.searchParams.set('connect_timeout', String(TIMEOUT_SECONDS))
  for (const name of MILLISECOND_PARAMETERS) url.searchParams.set(name, String(1000 * TIMEOUT_SECONDS))
  return url.href
}

/**
 * The URL of a test's database without the timeouts of tests, so that the service's own apply and it notices faults as
 * fast as in production.
 */
export function withOwnTimeouts(database: string): string {
  const url = new URL(database)
  for (const name of ['connect_timeout', ...MILLISECOND_PARAMETERS]) url.searchParams.delete(name)
  return url.href
}

const TEMPLATE = 'keyway_template'

/** Creates a database from a template that was migrated once for the whole cluster. */
export async function createDatabase(
  migrate: (url: string) => Promise<void>,
): Promise<{ url: string; drop(): Promise<void> }> {
  const cluster = await clusterUrl()
  await ensureTemplate(cluster, migrate)
  return create(` template ${TEMPLATE}${await copyStrategyClause()}`)
}

export async function createEmptyDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  return create('')
}

async function create(options: string): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `test_${randomBytes(6).toString('hex')}`
  const pool = await maintenancePool()
  await pool.query(`create database ${name}${options}`)
  return {
    url: databaseUrl(await clusterUrl(), name),
    async drop() {
      await pool.query(`drop database if exists ${name} with (force)`)
    },
  }
}

let strategyClause: string | undefined

/**
 * The clause that copies a template as files, which takes half the time of the default. Servers before version 15 do
 * not know the clause, and always copy files.
 */
async function copyStrategyClause(): Promise<string> {
  if (strategyClause === undefined) {
    const pool = await maintenancePool()
    const { rows } = await pool.query(`select current_setting('server_version_num')::int as version`)
    strategyClause = rows[0].version >= 150_000 ? ' strategy file_copy' : ''
  }
  return strategyClause
}

let sharedPool: Promise<pg.Pool> | undefined

/** The pool that creates and drops databases; a new connection for each would take as long as the work. */
function maintenancePool(): Promise<pg.Pool> {
  sharedPool ??= clusterUrl().then(url => {
    const pool = new pg.Pool({ connectionString: url, max: 2, allowExitOnIdle: true })
    return pool.on('error', () => {}) // the cluster stops before the pool is closed
  })
  return sharedPool
}

let templateCreation: Promise<void> | undefined

function ensureTemplate(cluster: string, migrate: (url: string) => Promise<void>): Promise<void> {
  templateCreation ??= withClient(cluster, async client => {
    await client.query('select pg_advisory_lock(20261120)')
    const existingTemplates = await client.query('select 1 from pg_database where datname = $1', [TEMPLATE])
    if (existingTemplates.rowCount) return
    const temporaryName = `${TEMPLATE}_building`
    await client.query(`drop database if exists ${temporaryName} with (force)`)
    await client.query(`create database ${temporaryName}`)
    await migrate(databaseUrl(cluster, temporaryName))
    await client.query(`alter database ${temporaryName} rename to ${TEMPLATE}`)
  })
  return templateCreation
}

export async function withClient<Result>(
  url: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
