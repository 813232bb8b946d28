import { createClock } from '../../src/clock.ts'
import type { Config } from '../../src/config.ts'
import type { Hub } from '../../src/hub/hub.ts'
import { newId } from '../../src/ids.ts'
import type { Log } from '../../src/log.ts'
import { networkOf } from '../../src/network.ts'
import { createLogoutDelivery } from '../../src/operations/logout-delivery.ts'
import { createTimers } from '../../src/operations/timers.ts'
import { createWebhookDelivery } from '../../src/operations/webhook-delivery.ts'
import { createDispatcher } from '../../src/outbox/dispatcher.ts'
import type { Dispatcher, Mailer, MailWriter } from '../../src/outbox/outbox.ts'
import { createSecrets } from '../../src/secrets.ts'
import { composeHttpPorts, composeHub } from '../../src/server.ts'
import { compose, type Services } from '../../src/services.ts'
import { createStorageOn } from '../../src/storage/database.ts'
import { openPepper } from '../../src/users/trial-credit.ts'
import type { Line, Offer } from '../hub/support/simulated-network.ts'
import { type Broker, type CarrierKind, createCarrier, type SimulatedCarrier } from './carrier.ts'
import type { DatabaseServer } from './database-server.ts'
import { createEngine } from './engine.ts'
import { Pool } from './pool.ts'
import { type Scheduler, SimulatedProcess } from './scheduler.ts'

const SECRET = Buffer.alloc(32, 7)
const CALLER = { address: '192.0.2.9', network: networkOf('192.0.2.9'), client: 'agent' }
const DRAIN_MS = 3000

export interface NodeDeps {
  config: Config
  log: Log
  scheduler: Scheduler
  server: DatabaseServer
  broker: Broker
  carrierKind: CarrierKind
  mailer: Mailer
  write: MailWriter
  /** Milliseconds by which its monotonic clock advances in one millisecond of the simulation. */
  clockRate: number
}

export type NodeServices = Awaited<ReturnType<SimulatedNode['compose']>>

/** A process of the service, composed as by `startServer`, without HTTP. */
export class SimulatedNode extends SimulatedProcess {
  isReady = false
  isDraining = false
  services: NodeServices | null = null
  hub: Hub | null = null
  ports: ReturnType<typeof composeHttpPorts> | null = null
  readonly lines = new Set<Line>()
  readonly pool: Pool
  readonly carrier: SimulatedCarrier
  readonly #deps: NodeDeps
  readonly #secrets = createSecrets([SECRET])
  #dispatcher: Dispatcher | null = null
  #stops: (() => unknown)[] = []
  /** The time since which the node runs without a pause: the end of its start or of its last pause. */
  calmSince = 0

  constructor(name: string, deps: NodeDeps) {
    super(name)
    this.#deps = deps
    const { server, broker, carrierKind, log } = deps
    this.pool = new Pool(server, this)
    this.carrier = createCarrier({
      kind: carrierKind,
      broker,
      owner: this,
      secrets: this.#secrets,
      log,
      now: () => server.time,
      execute: (sql, parameters) => this.#engine.connection.execute(sql, parameters),
      delay: () => new Promise(resolve => deps.scheduler.after(this, 1, 'broker', resolve)),
    })
    this.#engine = createEngine({ server, pool: this.pool, carrier: this.carrier, log })
  }

  readonly #engine: ReturnType<typeof createEngine>

  async compose() {
    const { config, log, clockRate } = this.#deps
    await this.carrier.start()
    const storage = createStorageOn(this.#engine, config)
    const monotonic = () => performance.now() * clockRate
    const clock = createClock('database', { monotonic, system: Date.now, uptime: monotonic })
    await clock.synchronize(storage.readClock)
    await openPepper(storage, this.#secrets)
    const services = compose(config, log, { storage, clock, secrets: this.#secrets, journal: null })
    await Promise.all([services.signingKeys.load(), services.policies.load(), services.imported.load()])
    return services
  }

  async start(): Promise<void> {
    const services = await this.compose()
    const nodeId = newId(services.clock.now())
    const serverServices = { ...services, instance: '' } as unknown as Services
    const hub = composeHub(serverServices, nodeId)
    await hub.start()
    this.services = services
    this.hub = hub
    this.ports = composeHttpPorts(serverServices, hub)
    this.#startWork(services, nodeId)
    this.isReady = true
    this.calmSince = this.#deps.scheduler.now
  }

  #startWork(services: NodeServices, nodeId: string): void {
    const { mailer, write, log } = this.#deps
    const onSettled = services.statistics.countMail
    this.#dispatcher = createDispatcher({ ...services, nodeId, mailer, write, log, onSettled })
    this.#dispatcher.start()
    const clockReference = 'database' as const
    const timers = createTimers({ ...services, clockReference })
    const logoutDelivery = createLogoutDelivery(services as never)
    const webhookDelivery = createWebhookDelivery(services as never, nodeId)
    const periodicServices = [timers, services.signingKeys, services.policies, services.imported]
    for (const each of [...periodicServices, logoutDelivery, webhookDelivery]) each.start()
    this.#stops = [...periodicServices, logoutDelivery, webhookDelivery].map(each => () => each.stop())
  }

  /** Accepts an agent's connection as after its HTTP handshake, which is not simulated. */
  async accept(line: Line, { token, resume }: Offer): Promise<void> {
    this.lines.add(line)
    const { services, hub } = this
    const claims = await services!.agentTokens.verify(token).catch(() => 'unknown' as const)
    if (claims === 'unknown' || !hub) return line.cut(1, 1)
    const isValid = claims && claims.expiresAt > services!.clock.now()
    hub.accept(line.server.socket, isValid ? claims : null, CALLER, resume)
  }

  /** Shuts the node down as SIGTERM does. */
  async shutDown(): Promise<void> {
    this.isDraining = true
    const { services, hub } = this
    await Promise.all([
      hub?.drain(DRAIN_MS),
      this.#dispatcher?.stop(DRAIN_MS),
      ...this.#stops.map(stop => stop()),
    ])
    if (services) {
      const work = [
        services.apiKeys.flushUses,
        services.meter.flush,
        services.statistics.flush,
        services.limiter.release,
      ]
      for (const each of work) await each().catch(() => {})
    }
    await hub?.stop()
    this.kill(true)
  }

  /** Ends the node as SIGKILL does. `areDelivered` says whether requests in transit still reach the database. */
  kill(areDelivered: boolean): void {
    this.isAlive = false
    this.isReady = false
    this.#deps.broker.listeners.forEach(listener => {
      if (listener.owner === this) this.#deps.broker.listeners.delete(listener)
    })
    for (const line of this.lines) line.cut(1, null)
    this.pool.dropAll(areDelivered)
  }

  pause(until: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, until)
    this.calmSince = this.pausedUntil
  }

  cutOff(): void {
    this.pool.cutOff()
    this.carrier.cutOff()
  }

  heal(): void {
    this.pool.heal()
    this.#deps.scheduler.within(this, () => this.carrier.heal())
  }
}
