import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { createLog } from '../../src/log.ts'
import { CannotStart } from '../../src/operator-error.ts'
import { createStorage, type StorageConfig } from '../../src/storage/database.ts'
import {
  type EngineName,
  forEachEngine,
  openTestStorage,
  postgresConfig,
  postgresMissing,
  sqliteConfig,
} from '../support/engines.ts'
import { inTime } from '../support/patience.ts'
import { createEmptyDatabase } from '../support/postgres.ts'

const log = createLog('silent')

describe('the schema', () => {
  test('is the same in both engines, including nullability and keys', {
    skip: postgresMissing(),
  }, async t => {
    const sqliteSchema = await readSchema('sqlite', t)
    const postgresSchema = await readSchema('postgres', t)
    assert.ok(sqliteSchema.length > 150)
    assert.deepEqual(sqliteSchema, postgresSchema)
  })
})

describe('a start on SQLite waits for a process', () => {
  test('that holds the lock of the database for longer than the writer waits', async t => {
    const config = await emptyDatabase('sqlite', t)
    await (await createStorage(config, log)).close()
    await startWhileLocked(config)
  })

  test('that holds the lock of a new database, whose journal mode cannot be changed then', async t => {
    await startWhileLocked(await emptyDatabase('sqlite', t))
  })
})

/** Starts while another connection has the lock, which it releases once the start has logged that it tries again. */
async function startWhileLocked(config: StorageConfig): Promise<void> {
  assert.ok(config.database.engine === 'sqlite')
  using lock = new DatabaseSync(config.database.file)
  lock.exec('begin immediate')
  const logged = Promise.withResolvers<void>()
  const starting = createStorage(config, { ...log, warn: () => logged.resolve() })
  await inTime('the start tries again', Promise.race([logged.promise, starting]))
  lock.exec('rollback')
  await (await starting).close()
}

forEachEngine(engine => {
  test('nodes that start concurrently on an empty database migrate it once', async t => {
    const config = await emptyDatabase(engine, t)
    const nodes = await Promise.all([1, 2, 3, 4].map(() => createStorage(config, log)))
    for (const node of nodes) assert.equal((await node.store.apps.list()).length, 4)
    await Promise.all(nodes.map(node => node.close()))
  })

  test('an old database is refused when migrating is not allowed', async t => {
    const config = await emptyDatabase(engine, t)
    await assert.rejects(createStorage({ ...config, autoMigrate: false }, log), needsMigration)
  })

  test('a database of a newer version is refused', async t => {
    const { storage, config } = await openTestStorage(engine, t)
    await storage.engine.connection.execute(`insert into schema_migrations values ('9999-later', 0)`, [])
    await assert.rejects(createStorage(config, log), isTooNew)
  })

  test('a database of the next version that declares this version compatible is accepted', async t => {
    const { storage, config } = await openTestStorage(engine, t)
    const declareOldestReader = (version: string) =>
      storage.store.instance.replace('oldest-reader-of-9999-later', version)
    await storage.engine.connection.execute(`insert into schema_migrations values ('9999-later', 0)`, [])
    await declareOldestReader('0.1.0')
    const storageOfThisVersion = await createStorage(config, log)
    assert.equal((await storageOfThisVersion.store.apps.list()).length, 4)
    await storageOfThisVersion.close()
    await declareOldestReader('99.0.0')
    await assert.rejects(createStorage(config, log), isTooNew)
  })
})

async function emptyDatabase(engine: EngineName, t: TestContext): Promise<StorageConfig> {
  if (engine === 'sqlite') {
    const folder = mkdtempSync(join(tmpdir(), 'keyway-sqlite-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    return sqliteConfig(folder)
  }
  const database = await createEmptyDatabase()
  t.after(database.drop)
  return postgresConfig(database.url)
}

const SQLITE_COLUMNS = `
  select m.name || '.' || c.name || ' ' || lower(c.type) || case when c."notnull" then ' not null' else '' end as line
  from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table'`
const POSTGRES_COLUMNS = `
  select table_name || '.' || column_name || ' ' || data_type || case is_nullable when 'NO' then ' not null' else '' end as line
  from information_schema.columns where table_schema = 'public'`
const SQLITE_INDEXES = `
  select m.name || ' (' || (select group_concat(name, ', ' order by seqno) from pragma_index_info(i.name)) || ')'
    || case when i."unique" then ' unique' else '' end as line
  from sqlite_master m join pragma_index_list(m.name) i where m.type = 'table'`
/** Without the trigram index of addresses, which SQLite does not have. */
const POSTGRES_INDEXES = `
  select t.relname || ' (' || (select string_agg(a.attname, ', ' order by k.n)
      from unnest(x.indkey::smallint[]) with ordinality k(attnum, n)
      join pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum) || ')'
    || case when x.indisunique then ' unique' else '' end as line
  from pg_index x join pg_class t on t.oid = x.indrelid join pg_namespace n on n.oid = t.relnamespace
  where n.nspname = 'public' and x.indexrelid::regclass::text <> 'users_address_parts'`

async function readSchema(engine: EngineName, t: TestContext): Promise<string[]> {
  const { storage } = await openTestStorage(engine, t)
  const queries =
    engine === 'sqlite' ? [SQLITE_COLUMNS, SQLITE_INDEXES] : [POSTGRES_COLUMNS, POSTGRES_INDEXES]
  const lines: string[] = []
  for (const query of queries) {
    const { rows } = await storage.engine.connection.execute(query, [])
    lines.push(...rows.map(row => (row as { line: string }).line))
  }
  // PostgreSQL has an index for the integer primary key of schema_lock, SQLite has none.
  return lines.filter(line => !line.startsWith('schema_lock (')).sort()
}

function needsMigration(error: unknown): boolean {
  return error instanceof CannotStart && /run "keyway migrate"$/.test(error.message)
}

function isTooNew(error: unknown): boolean {
  return error instanceof CannotStart && /use the newer version$/.test(error.message)
}
