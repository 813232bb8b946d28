import { setTimeout as wait } from 'node:timers/promises'
import { isDiskFull, KeywayError } from '../errors.ts'
import type { Log } from '../log.ts'
import { CannotStart } from '../operator-error.ts'
import { VERSION } from '../version.ts'
import { type Connection, createDb, type Db, type Engine } from './engine.ts'
import { MIGRATIONS, OLDEST_READER } from './migrations/index.ts'
import type { Migration, Untyped } from './migrations/migration.ts'

const MAX_WAIT_MS = 60_000
const RETRY_MS = 200

/**
 * Applies missing migrations; nodes that start together run each one once. With `autoMigrate` false it only checks.
 *
 * @throws CannotStart
 */
export async function migrate(
  engine: Engine,
  autoMigrate: boolean,
  log: Log,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const missing = missingFrom(await appliedNames(createDb(engine, engine.connection)), migrations)
  if (missing.length === 0) return
  if (!autoMigrate) {
    throw new CannotStart(
      `the database needs the migrations ${missing.map(one => one.name).join(', ')}; run "keyway migrate"`,
    )
  }
  await withRetries(() => prepareLock(engine))
  await withRetries(() => runMissing(engine, migrations, log))
}

interface Applied {
  names: ReadonlySet<string>
  /**
   * The oldest version that can use a database with the newest of them, as recorded when it was applied; null: not
   * recorded.
   */
  oldestReader: string | null
}

function missingFrom({ names, oldestReader }: Applied, migrations: readonly Migration[]): Migration[] {
  const known = new Set(migrations.map(migration => migration.name))
  const unknown = [...names].filter(name => !known.has(name))
  // Migrations of the next minor version only add, so nodes of this version may restart during a rolling update.
  if (unknown.length > 0 && (oldestReader === null || isOlder(VERSION, oldestReader))) {
    throw new CannotStart(
      `the database has the migrations ${unknown.join(', ')}, which this version does not know; use the newer version`,
    )
  }
  return migrations.filter(migration => !names.has(migration.name))
}

async function appliedNames(db: Db): Promise<Applied> {
  const tables = await db.introspection.getTables()
  if (!tables.some(table => table.name === 'schema_migrations'))
    return { names: new Set(), oldestReader: null }
  const rows = await db.selectFrom('schema_migrations').select('name').orderBy('name').execute()
  const newest = rows.at(-1)?.name
  if (newest === undefined) return { names: new Set(), oldestReader: null }
  const recorded = db.selectFrom('instance').select('value').where('name', '=', oldestReaderOf(newest))
  return {
    names: new Set(rows.map(row => row.name)),
    oldestReader: (await recorded.executeTakeFirst())?.value ?? null,
  }
}

function oldestReaderOf(migration: string): string {
  return `oldest-reader-of-${migration}`
}

function isOlder(left: string, right: string): boolean {
  const [a, b] = [left, right].map(version => version.split('.').map(Number))
  const at = a!.findIndex((part, index) => part !== b![index])
  return at >= 0 && a![at]! < b![at]!
}

/** A row to lock, since not every engine has advisory locks. */
async function prepareLock(engine: Engine): Promise<void> {
  await engine.transaction(async tx => {
    const { schema } = createDb(engine, tx)
    await schema
      .createTable('schema_lock')
      .ifNotExists()
      .addColumn('id', 'integer', c => c.notNull().primaryKey())
      .execute()
    await schema
      .createTable('schema_migrations')
      .ifNotExists()
      .addColumn('name', 'text', c => c.notNull().primaryKey())
      .addColumn('applied_at', 'bigint', c => c.notNull())
      .execute()
    await createDb(engine, tx)
      .insertInto('schema_lock')
      .values({ id: 1 })
      .onConflict(conflict => conflict.column('id').doNothing())
      .execute()
  })
}

async function runMissing(engine: Engine, migrations: readonly Migration[], log: Log): Promise<void> {
  const now = await engine.readClock()
  const applied = await engine.transaction(async tx => {
    const db = createDb(engine, tx)
    await db.updateTable('schema_lock').set({ id: 1 }).where('id', '=', 1).execute()
    const missing = missingFrom(await appliedNames(db), migrations)
    for (const migration of missing) {
      await migration.up({
        db: withoutTypes(db),
        binaryCollation: engine.binaryCollation,
        appendOnly: (table, mayDelete) => executeAll(tx, engine.appendOnly(table, mayDelete)),
        trigramIndex: (...index) => executeAll(tx, engine.trigramIndex(...index)),
        refuseTruncate: table => executeAll(tx, engine.refuseTruncate(table)),
      })
      await db.insertInto('schema_migrations').values({ name: migration.name, applied_at: now }).execute()
    }
    const newest = migrations.at(-1)?.name
    if (missing.length > 0 && newest) {
      await db
        .insertInto('instance')
        .values({ name: oldestReaderOf(newest), value: OLDEST_READER })
        .onConflict(conflict => conflict.column('name').doNothing())
        .execute()
    }
    return missing
  })
  for (const migration of applied) log.info({ migration: migration.name }, 'migrated the database')
}

function withoutTypes(db: Db): Untyped {
  return db as unknown as Untyped
}

async function executeAll(connection: Connection, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await connection.execute(statement, [])
}

/** unique_violation, duplicate_table, duplicate_object: another node created the same table concurrently. */
const CREATED_CONCURRENTLY = new Set(['23505', '42P07', '42710'])

/** Retries while another node holds the lock or the database is starting. */
async function withRetries(step: () => Promise<void>): Promise<void> {
  for (let waited = 0; ; waited += RETRY_MS) {
    try {
      return await step()
    } catch (error) {
      const code = (error as { code?: string }).code
      // A full disk is not retryable: the operator must learn of it at once.
      const isUnavailable = error instanceof KeywayError && !isDiskFull(error)
      const isRetryable = isUnavailable || (code !== undefined && CREATED_CONCURRENTLY.has(code))
      if (!isRetryable || waited >= MAX_WAIT_MS) throw error
      await wait(RETRY_MS)
    }
  }
}
