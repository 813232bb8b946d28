import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { encodeCursor } from '../packages/server/src/paging.ts'
import { type BenchDatabase, postgresDatabase, sqliteDatabase } from './support/databases.ts'
import { type Load, type Measurement, startLoad } from './support/load.ts'
import { pinBench } from './support/machine.ts'
import {
  accountId,
  addPeoplePostgres,
  addPeopleSqlite,
  pageCookieOf,
  refreshTokenOf,
} from './support/people.ts'
import { startKeyway } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { median, spread } from './support/statistics.ts'

/**
 * Measures lists of keys for an owner of few and an owner of very many keys of all statuses, alternating on one server.
 */

const SIZES = [100, QUICK ? 20_000 : 100_000]
const ROUNDS = QUICK ? 3 : 7
const RUN_MS = QUICK ? 400 : 1500
const PAGE_SIZE = 50
const MAX_LATENCY_RATIO = 1.5
const HOUR = 3_600_000
const NEWEST_KEY_AT = Date.now() - HOUR

pinBench()
await using load = await startLoad()
const targets: Target[] = []
const tables: Record<string, Row[]> = {}
for (const engine of ['sqlite', 'postgres'] as const) {
  await using database = await (engine === 'sqlite' ? sqliteDatabase : postgresDatabase)(10)
  await fill(database)
  await using server = await startKeyway(database.settings)
  tables[`Lists on ${engine}, one connection, by the number of keys of the owner`] = await measure(
    load,
    engine,
    server,
  )
}
report('lists', tables, targets)

/**
 * Inserts few keys for owner 0 and many for owner 1. By turns a key is revoked, expired, active without an expiry, or
 * active with one.
 */
async function fill({ file, settings }: BenchDatabase): Promise<void> {
  const people = { from: 0, to: SIZES.length, account: true, session: true, pageSession: true }
  const statement = (owner: number, numbers: string) => `${numbers}
    insert into api_keys (id, user_id, app_id, key_hash, key_prefix, scopes, allowed_networks, created_at, expires_at, revoked_at)
    select 'list ' || ${owner} || ' ' || i, '${accountId(owner)}', 'service-sdk', 'list ' || ${owner} || ' ' || i, 'svc_', '[]', '[]',
      ${NEWEST_KEY_AT} - i, case i % 4 when 1 then ${NEWEST_KEY_AT} when 3 then ${NEWEST_KEY_AT + 48 * HOUR} end, case i % 4 when 0 then ${NEWEST_KEY_AT} end
    from n`
  if (file) {
    addPeopleSqlite(file, people)
    const db = new DatabaseSync(file)
    for (const [owner, size] of SIZES.entries())
      db.exec(
        statement(
          owner,
          `with recursive n(i) as (select 0 union all select i + 1 from n where i < ${size - 1})`,
        ),
      )
    db.close()
    return
  }
  const url = settings.KEYWAY_DATABASE_URL!
  await addPeoplePostgres(url, people)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (const [owner, size] of SIZES.entries())
    await client.query(statement(owner, `with n(i) as (select * from generate_series(0, ${size - 1}))`))
  await client.query('vacuum analyze')
  await client.end()
}

async function measure(
  generator: Load,
  engine: string,
  server: { port: number; pid: number },
): Promise<Row[]> {
  const headers = await Promise.all(
    SIZES.map(async (_, owner) => ({
      cookie: `keyway_session=${pageCookieOf(owner)}`,
      authorization: `Bearer ${await accessToken(server.port, owner)}`,
    })),
  )
  const rows: Row[] = []
  for (const [what, pathOf] of Object.entries(paths())) {
    const runs: Measurement[][] = SIZES.map(() => [])
    for (let round = -1; round < ROUNDS; round++)
      for (const [owner, size] of SIZES.entries()) {
        const job = { port: server.port, connections: 1, method: 'GET', bodies: [''], rate: null }
        const requestOptions = {
          path: pathOf(size),
          headers: headers[owner]!,
          warmUpMs: 100,
          durationMs: RUN_MS,
        }
        const run = await generator.run({ ...job, ...requestOptions }, server.pid)
        if (round >= 0) runs[owner]!.push(run)
      }
    const ratios = runs[1]!.map((run, round) => run.p50 / runs[0]![round]!.p50)
    rows.push({
      list: what,
      [`p50 ms, ${SIZES[0]}`]: median(runs[0]!.map(run => run.p50)),
      [`p50 ms, ${SIZES[1]}`]: median(runs[1]!.map(run => run.p50)),
      ratio: spread(ratios),
    })
    const isReached = median(ratios) <= MAX_LATENCY_RATIO
    targets.push({
      what: `${what}, ${engine}`,
      wanted: `≤ ${MAX_LATENCY_RATIO}`,
      measured: spread(ratios),
      reached: isReached,
    })
  }
  return rows
}

function paths(): Record<string, (size: number) => string> {
  const list = (status: string, cursor: string) => `/v1/api-keys?limit=${PAGE_SIZE}${status}${cursor}`
  const allPaths: Record<string, (size: number) => string> = { '/keys': () => '/keys' }
  for (const status of ['active', 'expired', 'revoked', 'all']) {
    const filter = status === 'all' ? '' : `&status=${status}`
    // The position after which an owner of `size` keys has 39 left: as many for the large owner as for the small one.
    const lastPageCursor = (size: number) =>
      encodeCursor({ at: NEWEST_KEY_AT - (size - 40), id: accountId(0) })
    allPaths[`first page, ${status}`] = () => list(filter, '')
    allPaths[`last page, ${status}`] = size => list(filter, `&cursor=${lastPageCursor(size)}`)
  }
  return allPaths
}

async function accessToken(port: number, owner: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/auth/refresh`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ refresh_token: refreshTokenOf(owner) }),
  })
  return ((await answer.json()) as { access_token: string }).access_token
}
