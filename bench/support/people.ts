import { hash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { createSecrets } from '../../packages/server/src/secrets.ts'
import { pageCookie, refreshToken } from '../../packages/server/src/sessions/refresh-token.ts'
import { benchId, SECRET } from './databases.ts'

/*
 * Links, accounts and sessions for the benchmarks. Everything about a user is derived from a number, so that request
 * bodies are known without reading mails.
 */

const secrets = createSecrets([Buffer.from(SECRET, 'base64')])
const DAY = 86_400_000

export const addressOf = (n: number) => `p${n}@example.com`
export const linkTokenOf = (n: number) => `${n}`.padStart(43, 'A')
export const linkTokenHashOf = (n: number) => hash('sha256', linkTokenOf(n), 'base64url')
export const accountId = (n: number) => benchId(5, n)
const linkId = (n: number) => benchId(6, n)
const sessionId = (n: number) => benchId(7, n)
const sessionSecret = (n: number) => Buffer.from(hash('sha256', `session ${n}`, 'base64'), 'base64')
const pageSessionId = (n: number) => benchId(8, n)
export const pageCookieOf = (n: number) => pageCookie(pageSessionId(n), sessionSecret(n))
export const refreshTokenOf = (n: number) => refreshToken(sessionId(n), 0, sessionSecret(n))

export interface Range {
  from: number
  to: number
}

/** The users from `from` to `to`, exclusive, and what each of them has. */
export interface People extends Range {
  link?: boolean
  account?: boolean
  session?: boolean
  pageSession?: boolean
}

type Table = [name: string, columns: string[], row: (n: number) => unknown[]]

function tablesOf({ link, account, session, pageSession }: People): Table[] {
  const now = Date.now()
  const tables: Table[] = []
  if (account) {
    tables.push([
      'users',
      ['id', 'email', 'role', 'status', 'created_at'],
      n => [accountId(n), addressOf(n), 'user', 'active', now],
    ])
  }
  if (link) {
    tables.push([
      'magic_links',
      ['id', 'token_hash', 'code_hash', 'email', 'app_id', 'created_at', 'expires_at', 'code_tries'],
      n => [linkId(n), linkTokenHashOf(n), 'none', addressOf(n), 'console', now, now + DAY, 0],
    ])
  }
  for (const kind of [session && 'api', pageSession && 'page']) {
    if (!kind) continue
    const idOf = kind === 'api' ? sessionId : pageSessionId
    tables.push([
      'sessions',
      [
        'id',
        'user_id',
        'app_id',
        'kind',
        'created_at',
        'last_used_at',
        'expires_at',
        'counter',
        'sealed_secret',
        'retry_keys',
        'network',
      ],
      n => [
        idOf(n),
        accountId(n),
        'console',
        kind,
        now,
        now,
        now + 30 * DAY,
        0,
        secrets.seal('session-secret', sessionSecret(n), idOf(n)),
        '[]',
        '127.0.0.1',
      ],
    ])
  }
  return tables
}

export function addPeopleSqlite(file: string, people: People): void {
  const database = new DatabaseSync(file, { timeout: 30_000 })
  database.exec('begin immediate')
  for (const [name, columns, row] of tablesOf(people)) {
    const insert = database.prepare(
      `insert into ${name} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
    )
    for (let n = people.from; n < people.to; n++) insert.run(...(row(n) as string[]))
  }
  database.exec('commit')
  database.close()
}

const ROWS_PER_INSERT = 5000

export async function addPeoplePostgres(url: string, people: People): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    for (const [name, columns, row] of tablesOf(people)) {
      for (let from = people.from; from < people.to; from += ROWS_PER_INSERT) {
        const count = Math.min(ROWS_PER_INSERT, people.to - from)
        const rows = Array.from({ length: count }, (_, index) => row(from + index))
        const objects = rows.map(values =>
          Object.fromEntries(columns.map((column, index) => [column, values[index]])),
        )
        await client.query(
          `insert into ${name} (${columns.join(', ')})
           select ${columns.join(', ')} from json_populate_recordset(null::${name}, $1)`,
          [JSON.stringify(objects)],
        )
      }
    }
    await client.query('analyze')
  } finally {
    await client.end()
  }
}
