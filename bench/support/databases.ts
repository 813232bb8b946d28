import { hash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { createLog } from '../../packages/server/src/log.ts'
import { createStorage } from '../../packages/server/src/storage/database.ts'
import { clusterUrl, databaseUrl } from '../../packages/server/test/support/postgres.ts'

const KEYS_PER_USER = 10
export const SECRET = Buffer.alloc(32, 7).toString('base64')
/** A recent time, since the first use of a dormant key would send mail to its owner. */
const CREATED_AT = Date.now()

export interface BenchDatabase extends AsyncDisposable {
  /** Settings of a service on this database. */
  settings: Record<string, string>
  /** The SQLite file; empty for PostgreSQL. */
  file: string
}

/** Parent of the database folders; ten million keys need several gigabytes. */
const ROOT = process.env.KEYWAY_BENCH_DIR ?? tmpdir()

/** Creates a migrated SQLite database with this number of keys in a new folder. */
export async function sqliteDatabase(keys: number): Promise<BenchDatabase> {
  const folder = mkdtempSync(join(ROOT, 'keyway-bench-'))
  const file = join(folder, 'keyway.db')
  const database = { engine: 'sqlite', file } as const
  await migrate({ dataDir: folder, database, events: { kind: 'in-process' } })
  fillSqlite(file, keys)
  return {
    settings: { KEYWAY_DATA_DIR: folder, KEYWAY_SECRET: SECRET },
    file,
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Like `sqliteDatabase`, in a temporary PostgreSQL server, or in that of `KEYWAY_TEST_POSTGRES_URL`. */
export async function postgresDatabase(keys: number): Promise<BenchDatabase> {
  const cluster = await clusterUrl()
  const name = `bench_${randomBytes(6).toString('hex')}`
  await executeSql(cluster, `create database ${name}`)
  const url = databaseUrl(cluster, name)
  const folder = mkdtempSync(join(ROOT, 'keyway-bench-'))
  await migrate({
    dataDir: folder,
    database: { engine: 'postgres', url },
    events: { kind: 'postgres', url },
  })
  await fillPostgres(url, keys)
  return {
    settings: {
      KEYWAY_DATABASE_URL: url,
      KEYWAY_DATA_DIR: folder,
      KEYWAY_SECRET: SECRET,
    },
    file: '',
    async [Symbol.asyncDispose]() {
      await executeSql(cluster, `drop database if exists ${name} with (force)`)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

type DatabaseConfig = Omit<Parameters<typeof createStorage>[0], 'autoMigrate' | 'secrets'>

async function migrate(config: DatabaseConfig): Promise<void> {
  await (
    await createStorage(
      { ...config, secrets: [Buffer.from(SECRET, 'base64')], autoMigrate: true },
      createLog('error'),
    )
  ).close()
}

export async function executeSql(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(statement).finally(() => client.end())
}

/** The n-th key of every bench database. */
export function benchKey(n: number): string {
  return `svc_${n.toString(36).padStart(32, '0')}`
}

/** Request bodies for at most `wantedCount` of the first `keys` keys, spread evenly, in an order without locality. */
export function exchangeBodies(keys: number, wantedCount = 1000): string[] {
  const count = Math.min(keys, wantedCount)
  const step = Math.floor(keys / count)
  const bodies = Array.from({ length: count }, (_, index) =>
    JSON.stringify({ api_key: benchKey(((index * 7919) % count) * step) }),
  )
  return bodies
}

/** Inserts directly into the file, since ten million inserts through the service would take hours. */
function fillSqlite(file: string, keys: number): void {
  const database = new DatabaseSync(file)
  database.exec('pragma synchronous = off; pragma cache_size = -1000000; pragma temp_store = memory')
  const insertUser = database.prepare(
    `insert into users (id, email, role, status, created_at) values (?, ?, 'user', 'active', ?)`,
  )
  const insertKey = database.prepare(
    `insert into api_keys (id, user_id, app_id, key_hash, key_prefix, name, scopes, allowed_networks, created_at, last_used_at)
     values (?, ?, 'service-sdk', ?, ?, null, '[]', '[]', ?, ?)`,
  )
  // Indexes are built at the end; updating them row by row would take an hour for ten million keys.
  const indexes = database
    .prepare(
      `select name, sql from sqlite_schema where type = 'index' and tbl_name = 'api_keys' and sql is not null`,
    )
    .all() as { name: string; sql: string }[]
  for (const { name } of indexes) database.exec(`drop index ${name}`)
  database.exec('begin')
  for (let n = 0; n < keys; n++) {
    const userId = benchId(1, Math.floor(n / KEYS_PER_USER))
    if (n % KEYS_PER_USER === 0) insertUser.run(userId, `user${n}@example.com`, CREATED_AT)
    const text = benchKey(n)
    insertKey.run(
      benchId(2, n),
      userId,
      hash('sha256', text, 'base64url'),
      text.slice(0, 12),
      CREATED_AT,
      CREATED_AT,
    )
    if (n % 100_000 === 99_999) database.exec('commit; begin')
  }
  database.exec('commit')
  for (const { sql } of indexes) database.exec(sql)
  database.exec('pragma wal_checkpoint(truncate)')
  database.close()
}

async function fillPostgres(url: string, keys: number): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const numbers = Array.from({ length: keys }, (_, n) => n)
    const users = [...new Set(numbers.map(n => Math.floor(n / KEYS_PER_USER)))]
    await client.query(
      `insert into users (id, email, role, status, created_at)
       select id, id || '@example.com', 'user', 'active', $2 from unnest($1::text[]) as id`,
      [users.map(n => benchId(1, n)), CREATED_AT],
    )
    await client.query(
      `insert into api_keys (id, user_id, app_id, key_hash, key_prefix, name, scopes, allowed_networks, created_at, last_used_at)
       select id, user_id, 'service-sdk', key_hash, 'svc_00000000', null, '[]', '[]', $4, $4
       from unnest($1::text[], $2::text[], $3::text[]) as k (id, user_id, key_hash)`,
      [
        numbers.map(n => benchId(2, n)),
        numbers.map(n => benchId(1, Math.floor(n / KEYS_PER_USER))),
        numbers.map(n => hash('sha256', benchKey(n), 'base64url')),
        CREATED_AT,
      ],
    )
    await client.query('analyze')
  } finally {
    await client.end()
  }
}

/** The n-th id of a kind (one digit for users, another for keys, …), in the format of a UUID version 7. */
export function benchId(kind: number, n: number): string {
  return `0198c9f2-000${kind}-7000-8000-${n.toString(16).padStart(12, '0')}`
}
