import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { bodyPaths, exchange, openAccount } from './support/account.ts'
import { type Account, ATTACKS, type AttackJob, type AttackResult } from './support/attacks.ts'
import { type BenchDatabase, benchKey, postgresDatabase, sqliteDatabase } from './support/databases.ts'
import { LOAD_CORE, pinBench, spawnPinned } from './support/machine.ts'
import {
  BARE_TOKEN,
  KINDS,
  type Kind,
  type NeighboursJob,
  type NeighboursResult,
  SIGN_INS_PER_SECOND,
} from './support/neighbours-protocol.ts'
import { addPeoplePostgres, addPeopleSqlite, addressOf, linkTokenOf } from './support/people.ts'
import { type RunningProcess, startKeyway, startProgram } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'
import { startSilentMail } from './support/silent-mail.ts'
import { median } from './support/statistics.ts'

/**
 * Measures isolation from an attacker: one attack after the other, beside a steady load of exchanges, sign-ins and
 * messages of other users. The latency of those users is compared with runs without an attacker just before and after,
 * and, except for floods of agents' frames, with a bare `node:http` server under the same attack (`--engine bare`).
 *
 * `node bench/hostile.ts [--quick] [--engine sqlite|postgres|bare] [--only NAME,NAME] [--into FILE] [--again]
 * [--rounds N]`
 *
 * All attacks on one engine take eight minutes a round. Each figure is the median of the rounds, since the p99 of a few
 * seconds is a single pause, which garbage collection or the machine may cause as well as the attack. Each result is
 * appended to a file (`bench/results/hostile.jsonl`) at once, and attacks with a result are skipped, so that a run can
 * be interrupted and resumed; `--again` measures them again. The tables are made from the file.
 */

/** Duration of a round. In three seconds it has 600 exchanges, 150 messages, 60 sends and 60 verifications. */
const RUN_MS = QUICK ? 1500 : 3000
/** Duration of the attack before the measurement begins. */
const LEAD_MS = 1000
/** Pause after an attack, until its sockets are closed and its queued work is done. */
const SETTLE_MS = 2000
const KEYS = 1000
const NEIGHBOUR_KEYS = 500
/** Users with one link each, enough for all runs. */
const PEOPLE = { from: 0, to: 60_000, link: true }
const MAX_P99_RATIO = 3
/** A p99 to compare with is raised to this if it is lower, since differences of shorter times are noise. */
const NOISE_MS = 5
/** Niceness that the attacker gets on top of the bench's. */
const ADDED_NICENESS = 19

/** `bare` is no engine of the service but the control, support/bare-node.ts. */
const ENGINES = ['bare', 'sqlite', 'postgres'] as const
type Engine = (typeof ENGINES)[number]
const TITLES = { bare: 'bare node:http', sqlite: 'SQLite', postgres: 'PostgreSQL' }

const BARE_ACCOUNT: Account = {
  key: 'svc_bare',
  agentToken: BARE_TOKEN,
  accessToken: 'bare',
  refreshToken: 'svr_bare',
  cookie: 'bare=1',
}

/** The result of one attack on one engine. */
interface Measurement {
  engine: Engine
  attackName: string
  /** p99 in milliseconds without an attack (median of the runs before, between and after attacks) and during one. */
  p99: Record<Kind, { without: number; beside: number; samples: number }>
  errors: number
  error?: string
  attack: AttackResult
}

const nameParts = option('--only')?.split(',') ?? ['']
const attackNames = Object.keys(ATTACKS).filter(name => nameParts.some(word => name.includes(word)))
const engines = ENGINES.filter(name => name === (option('--engine') ?? name))
const file = option('--into') ?? join(import.meta.dirname, 'results', 'hostile.jsonl')
const rounds = Number(option('--rounds') ?? (QUICK ? 1 : 3))
const ignoresEarlierResults = process.argv.includes('--again')

pinBench()
mkdirSync(dirname(file), { recursive: true })
await using mail = await startSilentMail()
const neighbours = await startChild('./support/neighbours.ts')
const attacker = await startChild('./support/attacker.ts')
// The attacker shares a core with the measuring process, and must not slow it down.
setPriority(attacker.pid!, Math.min(constants.priority.PRIORITY_LOW, getPriority() + ADDED_NICENESS))

for (const engine of engines) {
  const measuredNames = new Set(
    ignoresEarlierResults ? [] : earlierResults(engine).map(({ attackName }) => attackName),
  )
  const missingNames = attackNames.filter(
    attackName => !measuredNames.has(attackName) && !(engine === 'bare' && floodsAgents(attackName)),
  )
  if (missingNames.length > 0) await measure(engine, missingNames)
}
neighbours.kill()
attacker.kill()
const results = engines.flatMap(earlierResults).filter(({ attackName }) => attackNames.includes(attackName))
report(
  'hostile',
  Object.fromEntries(engines.map(tableOf)),
  results.filter(({ engine }) => engine !== 'bare').flatMap(targetsOf),
)

/** Whether the attack floods agents. The bare server has no limit of frames, so such an attack would block it. */
function floodsAgents(attackName: string): boolean {
  return ATTACKS[attackName]!.needs === 'agents'
}

/** The latest result of each attack on this engine. */
function earlierResults(wanted: Engine): Measurement[] {
  if (!existsSync(file)) return []
  const rows = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Measurement)
  const latestByName = new Map(
    rows.filter(({ engine }) => engine === wanted).map(row => [row.attackName, row]),
  )
  return [...latestByName.values()]
}

/** Runs all attacks on one service, so that effects of earlier attacks accumulate. */
async function measure(engine: Engine, missingNames: string[]): Promise<void> {
  await using database = engine === 'bare' ? null : await openDatabase(engine)
  const nextLinkNumber = linkNumberGenerator()
  await using server = database
    ? await startKeyway({ ...database.settings, ...mail.settings })
    : await startProgram('./bare-node.ts')
  // The result of the first run is discarded, since its calls are still interpreted, not compiled.
  await measureOthers(server, nextLinkNumber)
  let resultBefore = await measureOthers(server, nextLinkNumber)
  for (const attackName of missingNames) {
    const resultsWithoutAttack = [resultBefore]
    const resultsUnderAttack = []
    for (let round = 0; round < rounds; round++) {
      resultsUnderAttack.push(await measureUnderAttack(engine, server, nextLinkNumber, attackName))
      await wait(SETTLE_MS)
      resultsWithoutAttack.push(await measureOthers(server, nextLinkNumber))
    }
    const { attack } = resultsUnderAttack[0]!
    const measurement = compare(
      { engine, attackName, attack },
      resultsWithoutAttack,
      resultsUnderAttack.map(({ during }) => during),
    )
    appendFileSync(file, `${JSON.stringify(measurement)}\n`)
    console.error(JSON.stringify(rowOf(measurement)))
    resultBefore = resultsWithoutAttack.at(-1)!
  }
}

async function openDatabase(engine: Exclude<Engine, 'bare'>): Promise<BenchDatabase> {
  const database = engine === 'sqlite' ? await sqliteDatabase(KEYS) : await postgresDatabase(KEYS)
  if (engine === 'sqlite') addPeopleSqlite(database.file, PEOPLE)
  else await addPeoplePostgres(database.settings.KEYWAY_DATABASE_URL!, PEOPLE)
  return database
}

/** Generates numbers of links, each of which is used once over all runs. */
function linkNumberGenerator(): () => number {
  let nextNumber = PEOPLE.from
  return () => nextNumber++
}

async function measureOthers(
  server: RunningProcess,
  nextLinkNumber: () => number,
): Promise<NeighboursResult> {
  const keys = Array.from({ length: NEIGHBOUR_KEYS }, (_, n) => benchKey(KEYS - NEIGHBOUR_KEYS + n))
  const signIns = Array.from({ length: (RUN_MS / 1000) * SIGN_INS_PER_SECOND }, () => {
    const n = nextLinkNumber()
    return { email: addressOf(n), token: linkTokenOf(n) }
  })
  // Ten consecutive keys have one owner.
  const agents = {
    fromToken: await exchange(server, benchKey(0)),
    toToken: await exchange(server, benchKey(1)),
  }
  const job: NeighboursJob = { port: server.port, durationMs: RUN_MS, keys, agents, signIns }
  return sendJob(neighbours, job)
}

async function measureUnderAttack(
  engine: Engine,
  server: RunningProcess,
  nextLinkNumber: () => number,
  attackName: string,
): Promise<{ during: NeighboursResult; attack: AttackResult }> {
  const { port } = server
  const job: AttackJob =
    engine === 'bare'
      ? { attack: attackName, port, account: BARE_ACCOUNT, bodyPaths: [{ method: 'POST', path: '/' }] }
      : {
          attack: attackName,
          port,
          account: await openAccount(server, nextLinkNumber),
          bodyPaths: await bodyPaths(server),
        }
  const attack = sendJob<AttackResult>(attacker, job)
  await wait(LEAD_MS)
  const during = await measureOthers(server, nextLinkNumber)
  attacker.send('stop')
  return { during, attack: await attack }
}

function compare(
  what: Pick<Measurement, 'engine' | 'attackName' | 'attack'>,
  resultsWithoutAttack: NeighboursResult[],
  resultsUnderAttack: NeighboursResult[],
): Measurement {
  const p99 = KINDS.map(kind => [
    kind,
    {
      without: median(resultsWithoutAttack.map(result => result[kind].p99)),
      beside: median(resultsUnderAttack.map(result => result[kind].p99)),
      samples: sum(resultsUnderAttack.map(result => result[kind].count)),
    },
  ])
  const userResults = resultsUnderAttack.flatMap(result => KINDS.map(kind => result[kind]))
  const error = userResults.find(user => user.error !== undefined)?.error
  return {
    ...what,
    p99: Object.fromEntries(p99),
    errors: sum(userResults.map(({ errors }) => errors)),
    ...(error === undefined ? {} : { error: error.slice(0, 120) }),
  }
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function tableOf(engine: Engine): [title: string, rows: Row[]] {
  const rows = earlierResults(engine).filter(({ attackName }) => attackNames.includes(attackName))
  return [`Others beside an attacker, ${TITLES[engine]}`, rows.map(rowOf)]
}

function rowOf(measurement: Measurement): Row {
  const { engine, attackName, p99, errors, error, attack } = measurement
  const row: Row = {
    engine,
    attack: attackName,
    times: worstKind(measurement).times,
    'of bare': ratioToBare(measurement),
  }
  for (const kind of KINDS) {
    const { without, beside, samples } = p99[kind]
    row[`${kind}, ms`] = `${without.toFixed(1)} → ${beside.toFixed(1)} (${samples})`
  }
  return { ...row, errors, ...(error ? { error } : {}), 'what the attacker got': attackText(attack) }
}

function targetsOf(measurement: Measurement): Target[] {
  const subject = `${TITLES[measurement.engine]}, ${measurement.attackName}`
  const { errors } = measurement
  const { kind, times } = worstKind(measurement)
  return [
    { what: `${subject}: errors of others`, wanted: '0', measured: String(errors), reached: errors === 0 },
    {
      what: `${subject}: p99 of others, of the p99 without`,
      wanted: `≤ ${MAX_P99_RATIO}`,
      measured: `${times.toFixed(2)} (${kind})`,
      reached: times <= MAX_P99_RATIO,
    },
  ]
}

function worstKind({ p99 }: Measurement): { kind: Kind; times: number } {
  const ratios = KINDS.map(kind => ({
    kind,
    times: p99[kind].beside / Math.max(NOISE_MS, p99[kind].without),
  }))
  return ratios.reduce((a, b) => (a.times >= b.times ? a : b))
}

/**
 * The worst ratio of a p99 during the attack to that of a bare `node:http` under the same attack; an empty text if
 * the bare server was not measured.
 */
function ratioToBare({ attackName, p99 }: Measurement): number | string {
  const bareResult = earlierResults('bare').find(row => row.attackName === attackName)
  if (!bareResult) return ''
  return Math.max(...KINDS.map(kind => p99[kind].beside / Math.max(NOISE_MS, bareResult.p99[kind].beside)))
}

function attackText({ answers, opened }: AttackResult): string {
  const parts = Object.entries(answers).map(([what, count]) => `${count} × ${what}`)
  return [`${opened} sockets`, ...parts].join(', ')
}

async function startChild(program: string): Promise<ChildProcess> {
  const path = new URL(program, import.meta.url).pathname
  const child = spawnPinned(LOAD_CORE, [path], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  await once(child, 'spawn')
  return child
}

async function sendJob<Answer>(child: ChildProcess, job: object): Promise<Answer> {
  child.send(job)
  const [answer] = await once(child, 'message')
  return answer as Answer
}

function option(name: string): string | undefined {
  const index = process.argv.indexOf(name)
  return index < 0 ? undefined : process.argv[index + 1]
}
