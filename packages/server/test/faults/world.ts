import type { TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { createLog } from '../../src/log.ts'
import { createStorage } from '../../src/storage/database.ts'
import { postgresConfig, sqliteConfig } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { NODE_SETTINGS } from '../support/nodes.ts'
import { withOwnTimeouts } from '../support/postgres.ts'
import type { PreviousVersion } from '../support/previous-version.ts'
import { type FaultProxy, startProxy } from '../support/proxy.ts'
import { Random } from '../support/random.ts'
import { type ServedProcess, serve, temporaryFolder } from '../support/serve.ts'
import { startSmtpServer, type TestSmtpServer } from '../support/smtp.ts'
import { checkAccounts } from './accounts.ts'
import { createHistory, type History, violatedInvariants } from './history.ts'
import { type PostgresServer, startPostgresServer } from './postgres-server.ts'
import { createSimulatedUsers, runWithoutFault, type Target } from './simulated-users.ts'

export interface ScenarioResult {
  faults: number
  operations: number
  violations: string[]
  /** Measurements for the report. */
  notes: string[]
}

export interface WorldOptions {
  engine: 'sqlite' | 'postgres'
  /** An existing PostgreSQL database, into which the scenario injects its faults; by default a server of its own. */
  databaseUrl?: string
  nodes?: number
  people?: number
  /** Additional settings of a node. */
  settings?: (node: number, world: World) => Record<string, string>
  /** The version that a node runs, if it is not the current one. */
  version?: (node: number) => PreviousVersion | undefined
  /** An existing folder for the data, for example on a small disk; by default a temporary one. */
  dataDir?: string
}

/**
 * A service of real processes, its database, the transport of events between its nodes, and its mail server. Faults are
 * injected into all of them.
 */
export interface World {
  random: Random
  history: History
  postgres: PostgresServer | null
  /** Proxies between the nodes and their database, one per node; none on SQLite. */
  databaseProxies: FaultProxy[]
  /** Proxies between the nodes and the carrier of their events (PostgreSQL or Redis), one per node; none on SQLite. */
  eventProxies: FaultProxy[]
  /** The proxy between the service and its mail server. */
  mailProxy: FaultProxy
  smtp: TestSmtpServer
  origins: string[]
  processes: ServedProcess[]
  faults: number
  notes: string[]
  target: Target
  /** Starts or restarts a node; returns the milliseconds until it was ready. */
  startNode(node: number): Promise<number>
  killNode(node: number): Promise<void>
  /** Stops a node with SIGTERM; returns its exit status. */
  stopNode(node: number): Promise<number | string>
  /** Simulates users while `faults` runs, then calls `heal`, waits for recovery, and checks all invariants. */
  underLoad(faults: () => Promise<void>, heal?: () => Promise<void>): Promise<ScenarioResult>
  output(): string
}

/** Registers clean-ups, like a test context. */
interface CleanUps {
  after(end: () => unknown): void
}

export async function withWorld(
  seed: number,
  options: WorldOptions,
  work: (world: World) => Promise<ScenarioResult>,
): Promise<ScenarioResult> {
  const cleanUps: (() => unknown)[] = []
  try {
    return await work(await openWorld(seed, options, { after: end => cleanUps.unshift(end) }))
  } finally {
    for (const end of cleanUps) await end()
  }
}

async function openWorld(seed: number, options: WorldOptions, cleanUps: CleanUps): Promise<World> {
  const t = cleanUps as unknown as TestContext
  const { engine, nodes = engine === 'sqlite' ? 1 : 2, people = 4 } = options
  const folder = temporaryFolder()
  cleanUps.after(folder.remove)
  const dataDir = options.dataDir ?? folder.path
  const smtp = await startSmtpServer(t, { startTls: false })
  const mailProxy = await startProxy(`smtp://127.0.0.1:${smtp.port}`, t)
  const postgres = engine === 'postgres' && !options.databaseUrl ? await startPostgresServer() : null
  if (postgres) cleanUps.after(() => postgres.remove())
  const ports = await Promise.all(Array.from({ length: nodes }, freePort))
  const outputs: string[] = []
  const liveNodes = new Set<number>()
  const random = new Random(seed)
  const history = createHistory()

  const world: World = {
    random,
    history,
    postgres,
    databaseProxies: postgres ? await Promise.all(ports.map(() => startProxy(postgres.url, t))) : [],
    eventProxies: postgres ? await Promise.all(ports.map(() => startProxy(postgres.url, t))) : [],
    mailProxy,
    smtp,
    origins: ports.map(port => `http://127.0.0.1:${port}`),
    processes: [],
    faults: 0,
    notes: [],
    target: {
      origins: () => (liveNodes.size > 0 ? [...liveNodes].map(node => world.origins[node]!) : world.origins),
      mail: (email, patience) => readMail(smtp, email, patience),
    },
    async startNode(node) {
      const settings: Record<string, string> = {
        ...NODE_SETTINGS,
        KEYWAY_PORT: String(ports[node]),
        KEYWAY_DATA_DIR: dataDir,
        ...(options.databaseUrl ? { KEYWAY_DATABASE_URL: options.databaseUrl } : {}),
        ...(postgres ? databaseSettingsOf(node, postgres) : {}),
        KEYWAY_MAIL_URL: `smtp://127.0.0.1:${mailProxy.port}`,
        KEYWAY_SUPPORT_EMAIL: 'support@example.com',
        KEYWAY_LOG_LEVEL: 'debug',
        ...options.settings?.(node, world),
      }
      const version = options.version?.(node)
      for (const name of version?.unknownSettings ?? []) delete settings[name]
      const server = await serve(settings, version?.launcher)
      world.processes[node] = server
      liveNodes.add(node)
      return server.readyAfter
    },
    async killNode(node) {
      liveNodes.delete(node)
      await world.processes[node]!.end('SIGKILL')
      outputs.push(world.processes[node]!.output())
    },
    async stopNode(node) {
      const status = await world.processes[node]!.end('SIGTERM')
      outputs.push(world.processes[node]!.output())
      return status
    },
    async underLoad(faults, heal = async () => {}) {
      const simulatedUsers = createSimulatedUsers(world.target, history, people, seed)
      try {
        await faults()
      } finally {
        await heal()
        await simulatedUsers.stop()
      }
      return checkInvariants(seed)
    },
    output: () => [...outputs, ...world.processes.map(each => each.output())].join('\n'),
  }
  cleanUps.after(() => Promise.all(world.processes.map(each => each.end('SIGKILL'))))
  for (let node = 0; node < nodes; node++) await world.startNode(node)
  return world

  function databaseSettingsOf(node: number, { url }: PostgresServer): Record<string, string> {
    return {
      KEYWAY_DATABASE_URL: world.databaseProxies[node]!.through(withOwnTimeouts(url)),
      KEYWAY_EVENTS_URL: world.eventProxies[node]!.through(url),
    }
  }

  /** Checks that the service works again, and that no invariant is violated. */
  async function checkInvariants(seed: number): Promise<ScenarioResult> {
    const violations: string[] = []
    for (const [node, origin] of world.origins.entries()) {
      const onlyThisNode: Target = { ...world.target, origins: () => [origin] }
      violations.push(...(await runWithoutFault(onlyThisNode, history, `after-${seed}-${node}@example.com`)))
    }
    // After a failover `world.postgres` is the new primary.
    const url = world.postgres?.url ?? options.databaseUrl
    const config = url ? postgresConfig(url) : sqliteConfig(dataDir)
    const storage = await createStorage(config, createLog('silent'))
    try {
      await untilMailIsSent(storage, violations)
      violations.push(...(await checkAccounts(storage)))
      violations.push(...(await checkMails(storage, smtp, history)))
    } finally {
      await storage.close()
    }
    violations.push(...violatedInvariants(history), ...findLeaks(world.output(), history.secrets))
    return {
      faults: world.faults,
      operations: history.operations.length,
      violations: [...new Set(violations)],
      notes: world.notes,
    }
  }
}

const TOKEN = /[?&]token=([\w-]{43})/
const returnedTokens = new WeakMap<TestSmtpServer, Set<string>>()

async function readMail(smtp: TestSmtpServer, email: string, patience: number): Promise<string | null> {
  const returnedTokensOfServer = returnedTokens.get(smtp) ?? new Set()
  returnedTokens.set(smtp, returnedTokensOfServer)
  for (let waited = 0; waited < patience; waited += 25) {
    for (const mail of smtp.mails) {
      const token = mail.recipients.includes(email) ? TOKEN.exec(mail.text)?.[1] : undefined
      if (!token || returnedTokensOfServer.has(token)) continue
      returnedTokensOfServer.add(token)
      return token
    }
    await wait(25)
  }
  return null
}

type OpenedStorage = Awaited<ReturnType<typeof createStorage>>

async function untilMailIsSent(storage: OpenedStorage, violations: string[]): Promise<void> {
  for (let waited = 0; waited < 60_000; waited += 100) {
    const { queued } = await storage.store.outbox.depth(await storage.readClock())
    if (queued === 0) return
    await wait(100)
  }
  violations.push('mail was still queued a minute after the fault was over')
}

/**
 * Checks that every acknowledged mail was sent, and that every account has one welcome mail, possibly delivered
 * repeatedly.
 */
async function checkMails(storage: OpenedStorage, smtp: TestSmtpServer, history: History): Promise<string[]> {
  const violations: string[] = []
  const messageIdsTo = (email: string) =>
    new Set(
      smtp.mails
        .filter(mail => mail.recipients.includes(email) && TOKEN.test(mail.text))
        .map(mail => mail.headers.get('message-id')?.[0]),
    )
  const sendCounts = new Map<string, { ok: number; unknown: number }>()
  for (const { op, on, outcome } of history.operations) {
    if (op !== 'send' || outcome === 'fail') continue
    const counts = sendCounts.get(on) ?? { ok: 0, unknown: 0 }
    counts[outcome]++
    sendCounts.set(on, counts)
  }
  for (const [email, { ok, unknown }] of sendCounts) {
    const mails = messageIdsTo(email).size
    if (mails < ok) violations.push(`${email} was promised ${ok} mails and got ${mails}`)
    if (mails > ok + unknown) violations.push(`${email} asked ${ok + unknown} times and got ${mails} mails`)
  }
  const { rows } = await storage.engine.connection.execute(
    "select count(*) as accounts, (select count(*) from messages where kind = 'welcome') as welcomes from users",
    [],
  )
  const { accounts, welcomes } = rows[0] as Record<'accounts' | 'welcomes', number>
  if (Number(accounts) !== Number(welcomes))
    violations.push(`${accounts} accounts and ${welcomes} welcome mails`)
  return violations
}

/** The service's output contains no credential. */
function findLeaks(output: string, secrets: ReadonlySet<string>): string[] {
  return [...secrets].some(secret => output.includes(secret)) ? ['a secret was printed'] : []
}
