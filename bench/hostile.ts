import { type ChildProcess, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { type Account, ATTACKS, type AttackOrder, type AttackResult } from './support/attacks.ts'
import { type BenchDatabase, benchKey, postgresDatabase, sqliteDatabase } from './support/databases.ts'
import { LOAD_CORE, pinBench, spawnPinned } from './support/machine.ts'
import {
  KINDS,
  type Kind,
  type NeighboursOrder,
  type NeighboursResult,
  SIGN_INS_PER_SECOND,
} from './support/neighbours-protocol.ts'
import { addPeoplePostgres, addPeopleSqlite, addressOf, tokenOf } from './support/people.ts'
import { type RunningProcess, startKeyway } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { startSilentMail } from './support/silent-mail.ts'
import { median } from './support/statistics.ts'

/**
 * Isolation from an attacker: one attack after the other, beside a steady load of exchanges, sign-ins and messages of
 * other users. Their latency is compared with that of runs without an attacker just before and after.
 *
 * `node bench/hostile.ts [--quick] [--engine sqlite|postgres] [--only WORDS]`
 */

const RUN_MS = QUICK ? 2000 : 5000
/** Duration of the attack before the measurement begins. */
const LEAD_MS = 1000
/** Pause after an attack, until its sockets are closed and its queued work is done. */
const SETTLE_MS = 2000
const KEYS = 1000
const NEIGHBOUR_KEYS = 500
/** Users with a link each, enough for all runs. */
const PEOPLE = { from: 0, to: 40_000, link: true }
const MOST_TIMES_P99 = 3
/** Below this, differences of p99 are noise. */
const NOISE_MS = 5

const only = option('--only')
const engine = option('--engine')
const flows = Object.keys(ATTACKS).filter(name => !only || name.includes(only))

pinBench()
await using mail = await startSilentMail()
const neighbours = await startChild('./support/neighbours.ts')
const attacker = await startChild('./support/attacker.ts')
// The attacker shares a core with the measuring process, and must not slow it down.
spawnSync('renice', ['-n', '19', '-p', String(attacker.pid)])

const tables: Record<string, Row[]> = {}
const targets: Target[] = []
if (engine !== 'postgres') {
  await using database = await sqliteDatabase(KEYS)
  addPeopleSqlite(database.file, PEOPLE)
  tables['Others beside an attacker, SQLite'] = await measure('SQLite', database)
}
if (engine !== 'sqlite') {
  await using database = await postgresDatabase(KEYS)
  await addPeoplePostgres(database.settings.KEYWAY_DATABASE_URL!, PEOPLE)
  tables['Others beside an attacker, PostgreSQL'] = await measure('PostgreSQL', database)
}
neighbours.kill()
attacker.kill()
report('hostile', tables, targets)

/** One row per attack, all against one service, so that effects of earlier attacks accumulate. */
async function measure(name: string, database: BenchDatabase): Promise<Row[]> {
  const rows: Row[] = []
  const people = numbers()
  await using server = await startKeyway({ ...database.settings, ...mail.settings })
  // The first thousands of calls run in the interpreter.
  await observe(server, people)
  let before = await observe(server, people)
  for (const flow of flows) {
    const account = await openAccount(server, people)
    const { during, attack } = await observeUnder(server, people, { flow, account })
    await wait(SETTLE_MS)
    const after = await observe(server, people)
    const row = { flow, ...compare([before, after], during), 'what the attacker got': shown(attack) }
    rows.push(row)
    console.error(`${name}: ${JSON.stringify(row)}`)
    targets.push(...targetsOf(`${name}, ${flow}`, [before, after], during))
    before = after
  }
  return rows
}

/** Numbers of links, each used once over all runs. */
function numbers(): () => number {
  let next = PEOPLE.from
  return () => next++
}

async function observe(server: RunningProcess, people: () => number): Promise<NeighboursResult> {
  const keys = Array.from({ length: NEIGHBOUR_KEYS }, (_, n) => benchKey(KEYS - NEIGHBOUR_KEYS + n))
  const signIns = Array.from({ length: (RUN_MS / 1000) * SIGN_INS_PER_SECOND }, () => {
    const n = people()
    return { email: addressOf(n), token: tokenOf(n) }
  })
  // Ten consecutive keys have one owner.
  const agents = {
    fromToken: await exchange(server, benchKey(0)),
    toToken: await exchange(server, benchKey(1)),
  }
  const order: NeighboursOrder = { port: server.port, durationMs: RUN_MS, keys, agents, signIns }
  return ask(neighbours, order)
}

async function observeUnder(
  server: RunningProcess,
  people: () => number,
  { flow, account }: { flow: string; account: Account },
): Promise<{ during: NeighboursResult; attack: AttackResult }> {
  const order: AttackOrder = { attack: flow, port: server.port, account, bodyPaths: await bodyPaths(server) }
  const attack = ask<AttackResult>(attacker, order)
  await wait(LEAD_MS)
  const during = await observe(server, people)
  attacker.send('stop')
  return { during, attack: await attack }
}

/** p99 of each kind beside the attacker, and the mean of the runs before and after. */
function compare(quiet: NeighboursResult[], during: NeighboursResult): Row {
  const row: Row = {}
  for (const kind of KINDS) {
    const usual = quietP99(quiet, kind)
    row[`${kind}, ms`] = `${usual.toFixed(1)} → ${during[kind].p99.toFixed(1)}`
  }
  row.errors = KINDS.reduce((sum, kind) => sum + during[kind].errors, 0)
  const failed = KINDS.find(kind => during[kind].error)
  if (failed) row.error = during[failed].error!.slice(0, 120)
  return row
}

function quietP99(quiet: NeighboursResult[], kind: Kind): number {
  return median(quiet.map(result => result[kind].p99))
}

function targetsOf(what: string, quiet: NeighboursResult[], during: NeighboursResult): Target[] {
  const errors = KINDS.reduce((sum, kind) => sum + during[kind].errors, 0)
  const worst = KINDS.map(kind => ({
    kind,
    times: during[kind].p99 / Math.max(NOISE_MS, quietP99(quiet, kind)),
  })).reduce((a, b) => (a.times >= b.times ? a : b))
  return [
    { what: `${what}: errors of others`, wanted: '0', measured: String(errors), reached: errors === 0 },
    {
      what: `${what}: p99 of others, of the p99 without`,
      wanted: `≤ ${MOST_TIMES_P99}`,
      measured: `${worst.times.toFixed(2)} (${worst.kind})`,
      reached: worst.times <= MOST_TIMES_P99,
    },
  ]
}

function shown({ answers, opened }: AttackResult): string {
  const parts = Object.entries(answers).map(([what, count]) => `${count} × ${what}`)
  return [`${opened} sockets`, ...parts].join(', ')
}

/** Creates a free account with a key and a signed-in browser. */
async function openAccount(server: RunningProcess, people: () => number): Promise<Account> {
  const n = people()
  const signedIn = await call(server, '/auth/verify-magic-link', { email: addressOf(n), token: tokenOf(n) })
  const accessToken = String(signedIn.access_token)
  const { key } = await call(server, '/v1/api-keys', { name: 'attack' }, accessToken)
  return {
    key: String(key),
    agentToken: await exchange(server, String(key)),
    accessToken,
    refreshToken: String(signedIn.refresh_token),
    cookie: await signInBrowser(server, people()),
  }
}

async function signInBrowser({ port }: RunningProcess, n: number): Promise<string> {
  const url = `http://localhost:${port}`
  const page = await fetch(`${url}/sign-in`)
  const formToken = /name="form_token" value="([^"]+)"/.exec(await page.text())![1]!
  const answer = await fetch(`${url}/verify`, {
    method: 'POST',
    redirect: 'manual',
    headers: { Cookie: cookiesOf(page), 'Sec-Fetch-Site': 'same-origin' },
    body: new URLSearchParams({ form_token: formToken, token: tokenOf(n), email: addressOf(n) }),
  })
  if (answer.status !== 303) throw new Error(`the browser was not signed in: ${answer.status}`)
  return cookiesOf(answer)
}

function cookiesOf(answer: Response): string {
  return answer.headers
    .getSetCookie()
    .map(line => line.split(';')[0])
    .join('; ')
}

async function exchange(server: RunningProcess, key: string): Promise<string> {
  return String((await call(server, '/auth/agent-token', { api_key: key })).token)
}

async function call(
  { port }: RunningProcess,
  path: string,
  body: unknown,
  accessToken?: string,
): Promise<Record<string, unknown>> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(accessToken ? { Authorization: `Bearer ${accessToken}` } : {}),
    },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as Record<string, unknown>
}

/** The paths of all calls with a body, from the OpenAPI document, and of the pages' forms. */
async function bodyPaths({ port }: RunningProcess): Promise<AttackOrder['bodyPaths']> {
  const answer = await fetch(`http://127.0.0.1:${port}/openapi.json`)
  const { paths } = (await answer.json()) as {
    paths: Record<string, Record<string, { requestBody?: unknown }>>
  }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.requestBody)
      .map(([method]) => ({ method: method.toUpperCase(), path: path.replaceAll(/\{\w+\}/g, 'x') })),
  )
}

async function startChild(program: string): Promise<ChildProcess> {
  const path = new URL(program, import.meta.url).pathname
  const child = spawnPinned(LOAD_CORE, [path], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  await once(child, 'spawn')
  return child
}

async function ask<Answer>(child: ChildProcess, order: object): Promise<Answer> {
  child.send(order)
  const [answer] = await once(child, 'message')
  return answer as Answer
}

function option(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}
