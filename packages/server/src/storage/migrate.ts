import type { Log } from '../log.ts'
import { CannotStart } from '../operator-error.ts'
import { VERSION } from '../version.ts'
import { type Connection, createDb, type Db, type Engine } from './engine.ts'
import { MIGRATIONS, OLDEST_READER } from './migrations/index.ts'
import type { Migration, Untyped } from './migrations/migration.ts'
import { retryAtStart } from './start-retries.ts'

/**
 * Applies missing migrations; of nodes that start together, one applies them.
 *
 * @throws CannotStart if the database belongs to a newer version, or if migrations are missing and `autoMigrate` is
 * false; KeywayError `unavailable` if the database cannot serve, or stays locked for a minute
 */
export async function migrate(
  engine: Engine,
  autoMigrate: boolean,
  log: Log,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  // The introspection is executed by SQLite's writer, which needs the lock.
  const applied = await retryAtStart(log, () => readApplied(createDb(engine, engine.connection)))
  const missingMigrations = findMissing(applied, migrations)
  if (missingMigrations.length === 0) return
  if (!autoMigrate) {
    throw new CannotStart(
      `the database needs the migrations ${missingMigrations.map(({ name }) => name).join(', ')}; run "keyway migrate"`,
    )
  }
  await retryAtStart(log, () => prepareLock(engine))
  await retryAtStart(log, () => runMissing(engine, migrations, log))
}

interface AppliedMigrations {
  names: ReadonlySet<string>
  /** The oldest version that can use the database, as recorded with its newest migration; null if it was not. */
  oldestReader: string | null
}

function findMissing(
  { names, oldestReader }: AppliedMigrations,
  migrations: readonly Migration[],
): Migration[] {
  const knownNames = new Set(migrations.map(migration => migration.name))
  const unknownNames = [...names].filter(name => !knownNames.has(name))
  // Migrations of the next minor version only add, so nodes of this version may restart during a rolling update.
  if (unknownNames.length > 0 && (oldestReader === null || isOlder(VERSION, oldestReader))) {
    throw new CannotStart(
      `the database has the migrations ${unknownNames.join(', ')}, which this version does not know; use the newer version`,
    )
  }
  return migrations.filter(migration => !names.has(migration.name))
}

async function readApplied(db: Db): Promise<AppliedMigrations> {
  const tables = await db.introspection.getTables()
  if (!tables.some(table => table.name === 'schema_migrations'))
    return { names: new Set(), oldestReader: null }
  const rows = await db.selectFrom('schema_migrations').select('name').orderBy('name').execute()
  const newestName = rows.at(-1)?.name
  if (newestName === undefined) return { names: new Set(), oldestReader: null }
  const oldestReaderQuery = db
    .selectFrom('instance')
    .select('value')
    .where('name', '=', oldestReaderOf(newestName))
  return {
    names: new Set(rows.map(row => row.name)),
    oldestReader: (await oldestReaderQuery.executeTakeFirst())?.value ?? null,
  }
}

/** The name of the row of `instance` that records the oldest version that can use a database with this migration. */
function oldestReaderOf(migration: string): string {
  return `oldest-reader-of-${migration}`
}

function isOlder(left: string, right: string): boolean {
  const [a, b] = [left, right].map(version => version.split('.').map(Number))
  const firstDifference = a!.findIndex((part, index) => part !== b![index])
  return firstDifference >= 0 && a![firstDifference]! < b![firstDifference]!
}

/** Creates the table of migrations, and a row to lock, since not every engine has advisory locks. */
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
  const appliedMigrations = await engine.transaction(async tx => {
    const db = createDb(engine, tx)
    await db.updateTable('schema_lock').set({ id: 1 }).where('id', '=', 1).execute()
    const missingMigrations = findMissing(await readApplied(db), migrations)
    for (const migration of missingMigrations) {
      await migration.up({
        db: withoutTypes(db),
        binaryCollation: engine.binaryCollation,
        appendOnly: (table, mayDelete) => executeAll(tx, engine.appendOnly(table, mayDelete)),
        trigramIndex: (...index) => executeAll(tx, engine.trigramIndex(...index)),
        refuseTruncate: table => executeAll(tx, engine.refuseTruncate(table)),
      })
      await db.insertInto('schema_migrations').values({ name: migration.name, applied_at: now }).execute()
    }
    const newestName = migrations.at(-1)?.name
    if (missingMigrations.length > 0 && newestName) {
      await db
        .insertInto('instance')
        .values({ name: oldestReaderOf(newestName), value: OLDEST_READER })
        .onConflict(conflict => conflict.column('name').doNothing())
        .execute()
    }
    return missingMigrations
  })
  for (const migration of appliedMigrations) log.info({ migration: migration.name }, 'migrated the database')
}

function withoutTypes(db: Db): Untyped {
  return db as unknown as Untyped
}

async function executeAll(connection: Connection, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await connection.execute(statement, [])
}
