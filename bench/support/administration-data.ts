import pg from 'pg'
import { benchId } from './databases.ts'

/**
 * People and keys for the lists of administrators. The database generates them itself, since inserting millions of rows
 * from this process would take hours. Rows differ in every property that the searches use, and are spread over three
 * years.
 */

const DAY = 86_400_000
const NOW = Date.now()
const THREE_YEARS = 3 * 365 * DAY
/** Number of people per mail, and per audit row. */
const PEOPLE_PER_MAIL = 10

const FIRST_NAMES =
  'ann,bob,carol,dave,erin,frank,grace,heidi,ivan,judy,kim,leo,mallory,nina,oscar,peggy,quinn,rupert,sybil,trent'
const LAST_NAMES =
  'smith,jones,garcia,mueller,rossi,novak,silva,kumar,tanaka,nguyen,cohen,larsen,dubois,kowalski,popov,haddad'

export interface DatasetSize {
  people: number
  keysPerPerson: number
}

/** Fills the tables. Indexes are dropped before and built at the end, which is faster than updating them row by row. */
export async function fillAdministration(url: string, { people, keysPerPerson }: DatasetSize): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await fill(client, people, keysPerPerson).finally(() => client.end())
}

async function fill(client: pg.Client, people: number, keysPerPerson: number): Promise<void> {
  const run = async (what: string, statement: string) => {
    const startedAt = performance.now()
    await client.query(statement)
    console.log(`${what}: ${Math.round((performance.now() - startedAt) / 1000)} s`)
  }
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(
    `select indexname as name, indexdef as definition from pg_indexes
     where tablename in ('users', 'api_keys', 'messages', 'audit_events') and indexname not like '%pkey'`,
  )
  for (const { name } of indexes) await client.query(`drop index ${name}`)
  // With wal_level=minimal, rows that a transaction writes into tables that it has emptied need no WAL. Triggers are
  // disabled too, since foreign keys would be checked row by row.
  await client.query("begin; set local session_replication_role = 'replica'")
  await client.query('truncate users, api_keys, messages cascade')
  await run(`${people} people`, peopleInsertSql(people))
  await run(`${people * keysPerPerson} keys`, keyInsertSql(people, keysPerPerson))
  await run(`${people / PEOPLE_PER_MAIL} mails`, mailInsertSql(people / PEOPLE_PER_MAIL))
  await client.query('commit')
  await run(`${people / PEOPLE_PER_MAIL} acts`, actInsertSql(people / PEOPLE_PER_MAIL))
  for (const { name, definition } of indexes) await run(name, definition)
  await run('vacuum', 'vacuum (analyze)')
}

/** Ids rise with time, like those of the service. */
const idOf = (kind: number, n: string) => `'${benchId(kind, 0).slice(0, -12)}' || lpad(to_hex(${n}), 12, '0')`
const atOf = (n: string, count: number) => `${NOW - THREE_YEARS} + (${n}::bigint * ${THREE_YEARS} / ${count})`
const oneOf = (list: string, n: string) =>
  `(string_to_array('${list}', ','))[1 + ((${n}) % ${list.split(',').length})::int]`

function peopleInsertSql(count: number): string {
  return `insert into users (id, email, role, status, created_at, deleted_at)
    select ${idOf(5, 'n')},
      case when n % 97 = 13 then null else ${oneOf(FIRST_NAMES, 'n')} || '.' || ${oneOf(LAST_NAMES, 'n / 20')} || n || '@' ||
        case when n % 3 = 0 then 'mail.example' else 'company' || (n % 5003) || '.example' end end,
      case when n % 50000 = 7 then 'support' else 'user' end,
      case when n % 97 = 13 then 'deleted' when n % 211 = 5 then 'suspended' else 'active' end,
      ${atOf('n', count)}, case when n % 97 = 13 then ${NOW} end
    from generate_series(1::bigint, ${count}) n`
}

function keyInsertSql(people: number, keysPerPerson: number): string {
  const count = people * keysPerPerson
  return `insert into api_keys (id, user_id, app_id, key_hash, key_prefix, name, scopes, allowed_networks, created_at,
      expires_at, revoked_at, last_used_at, external_id)
    select ${idOf(2, 'n')}, ${idOf(5, `1 + n % ${people}`)}, 'service-sdk',
      translate(encode(sha256(n::text::bytea), 'base64'), '+/=', '-_'),
      'svc_' || substr(translate(encode(sha256(n::text::bytea), 'base64'), '+/=', 'xyz'), 1, 8),
      case when n % 3 = 0 then 'robot ' || n end, '[]', '[]', ${atOf('n', count)},
      case n % 4 when 1 then ${NOW} + (n % 1000) * ${DAY / 10} when 2 then ${NOW - 30 * DAY} + (n % 1000) * ${DAY} end,
      case when n % 11 = 0 then ${NOW} end,
      case when n % 5 = 0 then null else ${NOW} - (n % 700) * ${DAY} end,
      case when n % 10 = 0 then 'customer-' || (n / 10 % 1000000) end
    from generate_series(1::bigint, ${count}) n`
}

function mailInsertSql(count: number): string {
  return `insert into messages (id, kind, recipient, user_id, state, attempts, created_at, next_attempt_at, settled_at)
    select ${idOf(3, 'n')}, case when n % 4 = 0 then 'welcome' else 'sign_in' end,
      'ann.smith' || n || '@mail.example', ${idOf(5, 'n')},
      case n % 50 when 0 then 'failed' when 1 then 'expired' when 2 then 'queued' else 'sent' end, 1,
      ${atOf('n', count)}, ${NOW + DAY}, case when n % 50 = 2 then null else ${NOW} end
    from generate_series(1::bigint, ${count}) n`
}

function actInsertSql(count: number): string {
  return `insert into audit_events (sequence, id, at, type, actor_id, actor, subject_id, user_id, subject, previous_hash, hash)
    select n, ${idOf(4, 'n')}, ${atOf('n', count)}, case when n % 100 = 0 then 'user.suspended' else 'user.read' end,
      ${idOf(5, '1 + n % 20')}, '{"type":"user","key_id":null,"session_id":null}', ${idOf(5, 'n')}, ${idOf(5, 'n')},
      '{"type":"user"}', '', '' from generate_series(1::bigint, ${count}) n`
}
