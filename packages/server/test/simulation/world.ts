import { type Config, loadConfig } from '../../src/config.ts'
import type { Log } from '../../src/log.ts'
import { checkHistories } from '../hub/support/resume-history.ts'
import { Random } from '../support/random.ts'
import { Calls } from './calls.ts'
import { Broker } from './carrier.ts'
import type { SimulatedTransaction } from './database.ts'
import { DatabaseServer } from './database-server.ts'
import { profileOf, Saboteur } from './faults.ts'
import { Invariants } from './invariants.ts'
import { KeyHistory } from './key-history.ts'
import { PostOffice } from './mail.ts'
import { SimulatedNode } from './node.ts'
import { Person } from './person.ts'
import { Robot } from './robots.ts'
import { watchRules } from './rules.ts'
import { Scheduler, SimulatedProcess } from './scheduler.ts'
import { signIn } from './sign-ins.ts'
import type { Trace } from './trace.ts'

const SETTINGS = {
  KEYWAY_PUBLIC_URL: 'https://keyway.test',
  KEYWAY_SECRET: Buffer.alloc(32, 7).toString('base64'),
  KEYWAY_MAIL_URL: 'smtp://mail.keyway.test:587',
  KEYWAY_MAIL_FROM: 'Keyway <no-reply@keyway.test>',
  KEYWAY_SUPPORT_EMAIL: 'support@keyway.test',
  KEYWAY_DATABASE_URL: 'postgres://simulated/keyway',
  KEYWAY_MAGIC_LINK_LIMITS: '4/minute',
  KEYWAY_MAGIC_LINK_NETWORK_LIMITS: 'off',
  KEYWAY_MAX_ACTIVE_KEYS: '3',
  KEYWAY_KEY_CREATION_LIMITS: '100000/day',
  KEYWAY_EXCHANGE_LIMITS: '1000000/minute',
  KEYWAY_REFRESH_IDLE_SECONDS: '600',
  KEYWAY_SESSION_SECONDS: '3600',
}
export const CONFIG: Config = loadConfig(SETTINGS)

/** Milliseconds of simulated time: for the start, with faults, after them, and for the check of liveness. */
const [START_MS, RUN_MS, SETTLE_MS, LIVENESS_MS] = [10_000, 60_000, 60_000, 30_000]
const CHECK_INTERVAL_MS = 1000

export interface Outcome {
  violation: string | null
  hash: string
  simulatedMs: number
  tasks: number
}

/** Nodes, people, agents and faults; all of it follows from one seed. */
export class World {
  readonly config = CONFIG
  readonly random: Random
  readonly scheduler: Scheduler
  readonly broker: Broker
  readonly server: DatabaseServer
  readonly mail: PostOffice
  readonly calls: Calls
  nodes: SimulatedNode[] = []
  readonly people: Person[] = []
  readonly robots: Robot[] = []
  readonly log: Log
  /** Whether people no longer act and no more faults happen. */
  isResting = false
  violation: string | null = null
  /** Whether the faults of this run delay no event and no query. */
  readonly isCalm: boolean
  readonly #trace: Trace
  readonly #invariants: Invariants
  readonly #saboteur: Saboteur
  readonly #self = new SimulatedProcess('world')
  readonly #owner: Person
  readonly #carrierKind: 'postgres' | 'redis'
  #started = 0

  constructor(seed: number, image: Uint8Array, trace: Trace) {
    const random = new Random(seed)
    this.random = random
    this.#trace = trace
    this.scheduler = new Scheduler(trace)
    this.broker = new Broker(this.scheduler, random)
    this.#carrierKind = random.pick(['postgres', 'redis'] as const)
    const { scheduler, broker } = this
    this.server = new DatabaseServer({
      image,
      scheduler,
      random,
      broker,
      trace,
      onCommit: work => this.#committed(work),
    })
    watchRules(this.server.database)
    this.mail = new PostOffice(scheduler, random)
    this.calls = new Calls({
      scheduler,
      random,
      nodes: () => this.nodes,
      onUnexpected: error => this.violate(`unexpected ${(error as Error).stack ?? error}`),
    })
    this.log = traceLog(this)
    this.#invariants = new Invariants(this)
    const profile = profileOf(seed)
    this.isCalm = profile.name === 'calm'
    this.#saboteur = new Saboteur(this, profile)
    this.#owner = new Person(this, 'robots')
  }

  get now(): number {
    return this.scheduler.now
  }

  note(what: string): void {
    this.#trace.add(this.now, 'world', what)
  }

  /** Records the first violation of an invariant, and stops the run. */
  violate(what: string): void {
    this.violation ??= `${(this.now / 1000).toFixed(3)} s: ${what}`
    this.note(`VIOLATION: ${what}`)
    this.scheduler.isStopped = true
  }

  /** Checks that what was confirmed to a client is stored in the database. */
  acknowledged(what: string, sql: string, id: string): void {
    if (this.server.database.read(sql, id).length === 0)
      this.violate(`${what} was confirmed and is not stored`)
  }

  later(ms: number, work: () => void): void {
    this.scheduler.after(this.#self, ms, 'later', work)
  }

  anyNode(): SimulatedNode | null {
    const servingNodes = this.nodes.filter(({ isReady, isDraining }) => isReady && !isDraining)
    return servingNodes.length > 0 ? this.random.pick(servingNodes) : null
  }

  startNode(): void {
    const { scheduler, server, broker, log } = this
    const node = new SimulatedNode(`node ${++this.#started}`, {
      config: CONFIG,
      log,
      scheduler,
      server,
      broker,
      carrierKind: this.#carrierKind,
      mailer: this.mail.mailer,
      write: this.mail.write,
      clockRate: 1 + (this.random.next() - 0.5) * 1e-4,
    })
    this.nodes.push(node)
    scheduler.within(node, () => {
      node.start().catch(error => {
        this.note(`${node.name} cannot start: ${error}`)
        this.crash(node)
      })
    })
  }

  /** Ends the process of a node; another one starts soon. */
  crash(node: SimulatedNode): void {
    this.note(`${node.name} crashes`)
    node.kill(this.random.next() < 0.5)
    this.#remove(node)
    this.scheduler.after(this.#self, this.random.between(300, 4000), 'start', () => this.startNode())
  }

  /** Replaces one node as in a rolling restart. */
  replace(node: SimulatedNode | null): void {
    if (!node) return
    this.startNode()
    this.scheduler.within(node, () => void node.shutDown().then(() => this.#remove(node)))
  }

  #remove(node: SimulatedNode): void {
    this.nodes = this.nodes.filter(each => each !== node)
  }

  async run(): Promise<Outcome> {
    for (let count = this.random.between(2, 3); count > 0; count--) this.startNode()
    await this.#until(START_MS / 2)
    await this.#makeRobots()
    for (const name of ['ada', 'bob', 'eve']) this.people.push(new Person(this, name))
    for (const person of this.people) this.#begin(person, () => person.live())
    this.#begin(this.#owner, () => this.#talk())
    this.#checkEverySecond()
    await this.#until(START_MS)
    this.#saboteur.start()
    await this.#until(START_MS + RUN_MS)
    this.isResting = true
    this.#saboteur.heal()
    await this.#until(START_MS + RUN_MS + SETTLE_MS)
    if (!this.violation) this.#checkAtRest()
    if (!this.violation) await this.#checkLiveness()
    const { tasks } = this.scheduler
    this.server.database.close()
    return { violation: this.violation, hash: this.#trace.digest(), simulatedMs: this.now, tasks }
  }

  #until(time: number): Promise<void> {
    return this.scheduler.runUntil(time)
  }

  #begin(process: SimulatedProcess, work: () => Promise<void>): void {
    this.scheduler.within(process, () => {
      work().catch(error => this.violate(`${process.name} failed: ${(error as Error).stack}`))
    })
  }

  async #makeRobots(): Promise<void> {
    const owner = this.#owner
    this.#begin(owner, async () => {
      const session = await signIn(owner)
      if (!session) throw new Error('the owner of the robots could not sign in')
      for (let n = 0; n < 3; n++) {
        const key = await KeyHistory.create(owner)
        if (key) this.robots.push(new Robot(this, `robot ${n}`, key))
      }
    })
    await this.#until(START_MS / 2 + 3000)
  }

  async #talk(): Promise<void> {
    while (!this.isResting) {
      await this.#owner.pause(this.random.between(5, 800))
      this.random.pick(this.robots).send(this.robots)
    }
  }

  #checkEverySecond(): void {
    this.scheduler.after(this.#self, CHECK_INTERVAL_MS, 'check', () => {
      this.#invariants.checkDeadlines()
      this.#checkEverySecond()
    })
  }

  #committed(work: SimulatedTransaction): void {
    for (const broken of work.broken) this.violate(broken)
    this.#invariants.committed(work)
  }

  #checkAtRest(): void {
    try {
      checkHistories(
        this.robots.map(({ history }) => history),
        false,
      )
    } catch (error) {
      this.violate((error as Error).message)
    }
    this.#invariants.checkAtRest()
  }

  /** Checks that after the faults a new person can sign in, refresh, and create, exchange and revoke a key. */
  async #checkLiveness(): Promise<void> {
    const person = new Person(this, 'zoe')
    let isDone = false
    this.#begin(person, async () => {
      const session = await signIn(person)
      if (!session) return
      await session.refresh()
      const key = await KeyHistory.create(person)
      await key?.exchange()
      await key?.revoke()
      isDone = key !== null && !session.isOver
    })
    await this.#until(this.now + LIVENESS_MS)
    if (!isDone && !this.violation) this.violate('after the faults a new person could not do everything')
  }
}

function traceLog(world: World): Log {
  const at = (level: string) => (fields: object, message: string) => {
    const error = 'err' in fields ? String((fields.err as Error)?.stack) : JSON.stringify(fields)
    world.note(`${level}: ${message} ${error}`)
  }
  return { debug() {}, info() {}, warn: at('warn'), error: at('error') }
}
