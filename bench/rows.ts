import pg from 'pg'
import { createLog } from '../packages/server/src/log.ts'
import { createStorage, type DatabaseStorage } from '../packages/server/src/storage/database.ts'
import { noUsage, type UsageRow, usageRows } from '../packages/server/src/usage/usage.ts'
import { type BenchDatabase, benchId, postgresDatabase, SECRET } from './support/databases.ts'
import { pinBench } from './support/machine.ts'
import { QUICK, type Row, report } from './support/report.ts'
import { median } from './support/statistics.ts'

/**
 * Measures the bytes that a row takes on PostgreSQL, with its indexes, in the tables that grow with people, keys and
 * agents; and what it costs to store the usage of keys that are all in use, as those of connected agents are. The
 * database writes to memory and without fsync, so the rates are upper bounds.
 */

const OWNERS = QUICK ? 1000 : 10_000
const KEYS_PER_OWNER = 10
const KEYS = OWNERS * KEYS_PER_OWNER
/** Owners in a transaction: with ten keys each, 250 keys, as `SUBJECTS_PER_FLUSH` of usage/meter.ts. */
const OWNERS_PER_BATCH = 25
const UPDATE_ROUNDS = 3
const NOW = Date.now()
/** SQL expressions: an id that rises with time, a SHA-256 as base64url, and text of the length of a sealed secret. */
const ID = `'${benchId(1, 0).slice(0, -12)}' || lpad(to_hex(nextval('ids')), 12, '0')`
const HASH = "translate(encode(sha256(n::text::bytea), 'base64'), '+/=', '-_')"
const SEALED = "repeat('s', 106)"
const CLIENT = "'keyway-sdk/1.0 node/26.10'"

pinBench()
await using database = await postgresDatabase(1)
const client = new pg.Client({ connectionString: database.settings.KEYWAY_DATABASE_URL! })
await client.connect()
// Open connections would keep the process alive after an error.
await using connections = new AsyncDisposableStack()
connections.defer(() => client.end())
await client.query('create sequence ids')
const storage = await openStorage(database)
connections.defer(() => storage.close())
const sizes: Row[] = []
for (const [what, tables, rows, statements] of inserts()) {
  const bytesBefore = await bytesOf(tables)
  for (const statement of statements) await client.query(statement)
  sizes.push({ what, bytes: ((await bytesOf(tables)) - bytesBefore) / rows })
}
const firstRun = await storeUsage(storage)
sizes.push({ what: 'hour or day of usage', bytes: (await bytesOf(['usage_counts'])) / firstRun.rows })
const laterRuns: UsageRun[] = []
for (let round = 0; round < UPDATE_ROUNDS; round++) laterRuns.push(await storeUsage(storage))
report(
  'rows',
  {
    'A row on PostgreSQL, with its indexes': sizes,
    [`Usage of ${KEYS.toLocaleString('en')} keys of ${OWNERS.toLocaleString('en')} people, stored once by one node`]:
      [
        { rows: 'new', ...toRow([firstRun]) },
        { rows: 'updated', ...toRow(laterRuns) },
      ],
  },
  [],
)

interface UsageRun {
  rows: number
  seconds: number
  walBytes: number
}

function toRow(runs: readonly UsageRun[]): Row {
  return {
    'a second': median(runs.map(run => run.rows / run.seconds)),
    'bytes of WAL a row': median(runs.map(run => run.walBytes / run.rows)),
  }
}

function openStorage({ settings }: BenchDatabase): Promise<DatabaseStorage> {
  const url = settings.KEYWAY_DATABASE_URL!
  return createStorage(
    {
      dataDir: settings.KEYWAY_DATA_DIR!,
      database: { engine: 'postgres', url },
      events: { kind: 'postgres', url },
      secrets: [Buffer.from(SECRET, 'base64')],
      autoMigrate: false,
    },
    createLog('error'),
  )
}

/** Adds usage to the rows of every key and owner, in one transaction after the other, like the flush of a node. */
async function storeUsage({ transaction }: DatabaseStorage): Promise<UsageRun> {
  const walBefore = await walPosition()
  const startedAt = performance.now()
  let rows = 0
  for (let owner = 0; owner < OWNERS; owner += OWNERS_PER_BATCH) {
    const batch = Array.from({ length: OWNERS_PER_BATCH }, (_, index) => usageOf(owner + index)).flat()
    rows += batch.length
    await transaction(async tx => {
      await tx.usage.add(batch)
      return true
    })
  }
  return {
    rows,
    seconds: (performance.now() - startedAt) / 1000,
    walBytes: (await walPosition()) - walBefore,
  }
}

/** The usage of an owner and of each of the owner's keys, as a row for the hour and one for the day. */
function usageOf(owner: number): UsageRow[] {
  const counts = { ...noUsage(), connectedMs: 5000 }
  const keyIds = Array.from({ length: KEYS_PER_OWNER }, (_, key) => benchId(2, owner * KEYS_PER_OWNER + key))
  const keyRows = keyIds.flatMap(keyId => usageRows(benchId(5, owner), keyId, NOW, counts))
  return [...usageRows(benchId(5, owner), null, NOW, counts), ...keyRows.filter(row => row.keyId !== null)]
}

async function walPosition(): Promise<number> {
  const { rows } = await client.query(`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as at`)
  return rows[0].at
}

async function bytesOf(tables: readonly string[]): Promise<number> {
  const { rows } = await client.query(
    'select sum(pg_total_relation_size(name::regclass))::float8 as bytes from unnest($1::text[]) name',
    [tables],
  )
  return rows[0].bytes
}

/** Each insertion: what it adds, the tables, the number of rows, and the statements. */
function inserts(): [what: string, tables: string[], rows: number, statements: string[]][] {
  const owner = `'${benchId(1, 0).slice(0, -12)}' || lpad(to_hex(1 + n % ${OWNERS}), 12, '0')`
  const fromSeries = (count: number) => `from generate_series(0, ${count - 1}) n`
  const fromUsers = `from users where email like 'person%'`
  return [
    [
      'account with balance, trial credit, plan and authorizations',
      ['users', 'balances', 'ledger_entries', 'trial_credits', 'subscriptions', 'charge_authorizations'],
      OWNERS,
      [
        `insert into users (id, email, role, status, created_at)
          select ${ID}, 'person' || n || '@mail.example', 'user', 'active', ${NOW} + n ${fromSeries(OWNERS)}`,
        `insert into balances select id, 2000000 ${fromUsers}`,
        `insert into ledger_entries (id, user_id, kind, amount, balance_after, description, cause, created_at)
          select ${ID}, id, 'trial_credit', 2000000, 2000000, 'Trial credit', 'trial:' || id, ${NOW} ${fromUsers}`,
        `insert into trial_credits select encode(sha256(id::bytea), 'hex'), id, ${NOW} ${fromUsers}`,
        `insert into subscriptions select id, 'free', 'active', ${NOW} ${fromUsers}`,
        `insert into charge_authorizations select users.id, apps.id, ${NOW} from users, apps where first_party = 1`,
      ],
    ],
    [
      'key',
      ['api_keys'],
      KEYS,
      [
        `insert into api_keys (id, user_id, app_id, key_hash, key_prefix, scopes, allowed_networks, created_at, last_used_at,
            last_used_network, last_used_client)
          select ${ID}, ${owner}, 'service-sdk', ${HASH}, 'svc_' || substr(${HASH}, 1, 8), '[]', '[]', ${NOW} + n, ${NOW},
            '203.0.113.7', ${CLIENT} ${fromSeries(KEYS)}`,
      ],
    ],
    [
      'network of a key',
      ['key_networks'],
      KEYS,
      [`insert into key_networks select id, '203.0.113.0/24', ${NOW} from api_keys`],
    ],
    [
      'session',
      ['sessions'],
      KEYS,
      [
        `insert into sessions (id, user_id, app_id, kind, created_at, last_used_at, expires_at, counter, sealed_secret,
            retry_keys, network, client)
          select ${ID}, user_id, 'console', 'page', created_at, ${NOW}, ${NOW}, 0, ${SEALED}, '[]', '203.0.113.7', ${CLIENT}
          from api_keys`,
      ],
    ],
    [
      'security event',
      ['security_events'],
      KEYS,
      [
        `insert into security_events (id, user_id, type, at, network, client, key_id)
          select ${ID}, user_id, 'api_key.created', created_at, '203.0.113.7', ${CLIENT}, id from api_keys`,
      ],
    ],
    [
      'connection with the node of its owner',
      ['connections', 'user_nodes'],
      KEYS,
      [
        `insert into connections (id, node_id, user_id, key_id, address, client, connected_at)
          select ${ID}, '${benchId(9, 1)}', user_id, id, '203.0.113.7', ${CLIENT}, ${NOW} from api_keys`,
        `insert into user_nodes select distinct user_id, node_id from connections`,
      ],
    ],
  ]
}
