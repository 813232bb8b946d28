import { type CompiledQuery, sql } from 'kysely'
import type { Row } from '../backup/backup-file.ts'
import type { BackupStore, RestoreTransaction } from '../backup/backup-store.ts'
import { NODE_TIMEOUT_MS } from '../hub/presence-store.ts'
import { createDb, type Db, type Engine, type ReadInBatches } from './engine.ts'
import { applyJournalEntry } from './journal.ts'

/**
 * Tables that are not backed up: short-lived or recreated data, the state of running nodes, and the list of applied
 * migrations with its lock.
 */
const EXCLUDED_TABLES = new Set([
  'schema_lock',
  'schema_migrations',
  'signing_keys',
  'algorithm_keys',
  'authorization_codes',
  'email_changes',
  'client_assertions',
  'logout_notices',
  'nodes',
  'connections',
  'user_nodes',
  'inbox',
  'usage_flushes',
  'limit_holders',
  'device_authorizations',
])
/** Tables that are written first, since foreign keys refer to them. */
const TABLES_WRITTEN_FIRST = ['users', 'apps']
/** Maximum number of bind variables in one statement; SQLite's limit is 32766. */
const MAX_VARIABLES = 20_000

export function createBackupStore(engine: Engine): BackupStore {
  const db = createDb(engine, engine.connection)

  return {
    async migrations() {
      const rows = await db.selectFrom('schema_migrations').select('name').orderBy('name').execute()
      return rows.map(row => row.name)
    },
    async sealedPepper() {
      const query = db.selectFrom('instance').select('value').where('name', '=', 'address-pepper')
      return (await query.executeTakeFirst())?.value ?? null
    },
    async read(work) {
      const tables = await tablesOf(db)
      const at = await engine.readClock()
      return engine.snapshot(read => work(readRows(read, tables), at))
    },
    async isEmpty() {
      return !(await db.selectFrom('users').select('id').limit(1).executeTakeFirst())
    },
    async isServed(now) {
      const liveNodeQuery = db
        .selectFrom('nodes')
        .select('id')
        .where('seen_at', '>=', now - NODE_TIMEOUT_MS)
      return (await liveNodeQuery.executeTakeFirst()) !== undefined
    },
    write: work => engine.transaction(tx => work(createRestoreTransaction(createDb(engine, tx)))),
  }
}

async function tablesOf(db: Db): Promise<string[]> {
  const names = (await db.introspection.getTables()).map(table => table.name)
  const otherTables = names
    .filter(name => !EXCLUDED_TABLES.has(name) && !TABLES_WRITTEN_FIRST.includes(name))
    .sort()
  return [...TABLES_WRITTEN_FIRST, ...otherTables]
}

async function* readRows(
  read: ReadInBatches,
  tables: readonly string[],
): AsyncGenerator<{ table: string; row: Row }> {
  for (const table of tables) {
    for await (const batch of read(`select * from ${table}`)) for (const row of batch) yield { table, row }
  }
}

function createRestoreTransaction(db: Db): RestoreTransaction {
  let tables: string[] | undefined
  return {
    async clear() {
      for (const table of [
        'app_secrets',
        'apps',
        'instance',
        'signing_keys',
        'algorithm_keys',
        'nodes',
        'connections',
        'user_nodes',
        'audit_chain',
        'listed_administrators',
        'policies',
      ] as const)
        await db.deleteFrom(table).execute()
    },
    async insert(table, rows) {
      tables ??= await tablesOf(db)
      if (!tables.includes(table)) return false
      const columns = Object.keys(rows[0] ?? {})
      const rowsPerInsert = Math.max(1, Math.floor(MAX_VARIABLES / Math.max(1, columns.length)))
      for (let start = 0; start < rows.length; start += rowsPerInsert) {
        await db.executeQuery(buildInsert(db, table, columns, rows.slice(start, start + rowsPerInsert)))
      }
      return true
    },
    async endSignIns(now) {
      const sessionResult = await db
        .updateTable('sessions')
        .set({ ended_at: now, ended_by: 'revoked' })
        .where('ended_at', 'is', null)
        .executeTakeFirst()
      const linkResult = await db
        .updateTable('magic_links')
        .set({ used_at: now })
        .where('used_at', 'is', null)
        .executeTakeFirst()
      // An invitation that was accepted or revoked since the backup must not grant its role again.
      await db
        .updateTable('invitations')
        .set({ revoked_at: now })
        .where('accepted_at', 'is', null)
        .where('revoked_at', 'is', null)
        .execute()
      await db
        .updateTable('messages')
        .set({ state: 'expired', settled_at: now, sealed_content: null, leased_until: null })
        .where('state', '=', 'queued')
        .where('kind', 'in', ['sign_in', 'invitation', 'email_change_old', 'email_change_new'])
        .execute()
      return { sessions: Number(sessionResult.numUpdatedRows), links: Number(linkResult.numUpdatedRows) }
    },
    async revokeAllKeys(now) {
      const result = await db
        .updateTable('api_keys')
        .set({ revoked_at: now })
        .where('revoked_at', 'is', null)
        .executeTakeFirst()
      return Number(result.numUpdatedRows)
    },
    async postponeDeletions(until) {
      await db
        .updateTable('users')
        .set({ deletes_at: until })
        .where('deletes_at', 'is not', null)
        .where('deletes_at', '<', until)
        .execute()
    },
    apply: entry => applyJournalEntry(db, entry),
  }
}

/** Lists the columns explicitly, since a backup of an older version may lack some. */
function buildInsert(db: Db, table: string, columns: string[], rows: readonly Row[]): CompiledQuery {
  const values = rows.map(row => sql`(${sql.join(columns.map(column => row[column] ?? null))})`)
  return sql`insert into ${sql.table(table)} (${sql.join(columns.map(column => sql.ref(column)))}) values ${sql.join(values)}`.compile(
    db,
  )
}
