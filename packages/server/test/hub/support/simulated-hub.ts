import type { Event } from '../../../src/events.ts'
import { createHub } from '../../../src/hub/hub.ts'
import type { KeyStatus } from '../../../src/hub/hub-ports.ts'
import type { LocationStore } from '../../../src/hub/location-store.ts'
import type { HubPresence, NodeRow, PresenceRow } from '../../../src/hub/presence-store.ts'
import { newId } from '../../../src/ids.ts'
import { createLog } from '../../../src/log.ts'
import type { TestClock } from '../../support/clock.ts'
import type { Random } from '../../support/random.ts'
import type { Line, Offer } from './simulated-network.ts'

const TICK_MS = 500
const DRAIN_MS = 3000
const TOKEN_LIFETIME_MS = 1_000_000_000
const ADDRESS = { address: '192.0.2.1', network: '192.0.2.1', client: null }

export const OWNER = newId(1)

/** What all nodes share: the rows of the database, and the transport of events, which keeps one order for all nodes. */
export class SharedState {
  readonly nodes = new Map<string, NodeRow>()
  readonly rows = new Map<string, PresenceRow>()
  /** The nodes of each user. */
  readonly locations = new Map<string, Set<string>>()
  readonly #listeners = new Map<SimulatedHub, { at: number }>()
  readonly #random: Random
  readonly #clock: TestClock
  /** The longest delay of an event in milliseconds. */
  lag = 20

  constructor(random: Random, clock: TestClock) {
    this.#random = random
    this.#clock = clock
  }

  listen(hub: SimulatedHub): void {
    this.#listeners.set(hub, { at: 0 })
  }

  /** Delivers an event to each node after a random delay, in one order for all; nodes that are cut off lose it. */
  publish(event: Event): void {
    const text = JSON.stringify(event)
    for (const [hub, state] of this.#listeners) {
      const now = this.#clock.now()
      state.at = Math.max(state.at, now + this.#random.between(1, this.lag))
      setTimeout(() => hub.read(JSON.parse(text)), state.at - now)
    }
  }

  delay(): Promise<void> {
    return new Promise(resolve => setTimeout(resolve, this.#random.between(1, 5)))
  }
}

/** A node: the hub's own code, over a simulated network, database and transport of events. */
export class SimulatedHub {
  readonly id: string
  readonly lines = new Set<Line>()
  isDraining = false
  isDead = false
  /** Whether the node is cut off from the database and the other nodes. */
  isCutOff = false
  readonly #hub: ReturnType<typeof createHub>
  #listener: (event: Event) => void = () => {}

  constructor(shared: SharedState, clock: TestClock) {
    this.id = newId(clock.now())
    const query = async <Value>(work: () => Value): Promise<Value> => {
      await shared.delay()
      if (this.isCutOff || this.isDead) throw new Error('cut off')
      return work()
    }
    this.#hub = createHub({
      clock,
      ports: {
        verifyToken: async () => null,
        keyStatus: ids => query(() => new Map(ids.map(id => [id, keyStatus(id)]))),
        meter: { count() {}, countRefusal() {} } as never,
        endingsSince: () => query(() => []),
      },
      events: {
        subscribe: listener => {
          this.#listener = listener
          return () => {
            this.#listener = () => {}
          }
        },
        publish: event => query(() => shared.publish(event)),
      },
      presence: presenceOf(shared, query),
      locations: locationsOf(shared, query),
      log: createLog('silent'),
      publicUrl: 'https://keyway.example.com',
      corsOrigins: [],
      maxConnectionsPerUser: 1000,
      nodeId: this.id,
      version: 'test',
      tickMs: TICK_MS,
    })
    shared.listen(this)
  }

  start(): Promise<void> {
    return this.#hub.start()
  }

  read(event: Event): void {
    if (!this.isCutOff && !this.isDead) this.#listener(event)
  }

  /** Accepts an agent's connection; in this simulation the token is the id of the key. */
  accept(line: Line, { token: keyId, resume }: Offer, now: number): void {
    this.lines.add(line)
    line.nodeId = this.id
    const claims = { agentId: OWNER, keyId, scopes: null, expiresAt: now + TOKEN_LIFETIME_MS }
    this.#hub.accept(line.server.socket, claims, ADDRESS, resume)
  }

  /** Cuts the node off from the database and the other nodes; its agents still reach it. */
  cutOff(): void {
    this.isCutOff = true
  }

  heal(): void {
    if (!this.isCutOff) return
    this.isCutOff = false
    this.#listener({ type: 'events.gap' })
  }

  async shutDown(): Promise<void> {
    this.isDraining = true
    await this.#hub.drain(DRAIN_MS)
    await this.end()
  }

  /** Ends the node as SIGKILL would. */
  kill(): void {
    this.isDead = true
    void this.end()
  }

  async end(): Promise<void> {
    for (const line of this.lines) line.cut(1, 1)
    const stopping = this.#hub.stop()
    this.#listener = () => {}
    await stopping
    this.isDead = true
  }
}

type Query = <Value>(work: () => Value) => Promise<Value>

function presenceOf({ nodes, rows }: SharedState, query: Query): HubPresence {
  const liveRows = (seenSince: number) =>
    [...rows.values()].filter(row => (nodes.get(row.nodeId)?.seenAt ?? 0) >= seenSince)
  const store: Partial<HubPresence> = {
    heartbeat: node => query(() => void nodes.set(node.id, node)),
    nodes: seenSince => query(() => [...nodes.values()].filter(({ seenAt }) => seenAt >= seenSince)),
    listOf: (_userId, seenSince) => query(() => liveRows(seenSince)),
    record: (nodeId, added, removedIds) =>
      query(() => {
        for (const row of added) rows.set(row.connectionId, row)
        for (const id of removedIds) if (rows.get(id)?.nodeId === nodeId) rows.delete(id)
      }),
    deregister: nodeId =>
      query(() => {
        nodes.delete(nodeId)
        for (const [id, row] of rows) if (row.nodeId === nodeId) rows.delete(id)
      }),
  }
  return store as HubPresence
}

function locationsOf({ locations }: SharedState, query: Query): LocationStore {
  const nodesOf = (userId: string) => [...(locations.get(userId) ?? [])]
  return {
    enter: (nodeId, userIds) =>
      query(() => {
        for (const userId of userIds) locations.set(userId, new Set(nodesOf(userId)).add(nodeId))
        return new Map(userIds.map(userId => [userId, nodesOf(userId)]))
      }),
    leave: (nodeId, userIds) =>
      query(() => {
        for (const userId of userIds) locations.get(userId)?.delete(nodeId)
      }),
    nodesOf: userId => query(() => nodesOf(userId)),
  }
}

function keyStatus(id: string): KeyStatus {
  return {
    id,
    userId: OWNER,
    ownerStatus: 'active',
    name: id,
    scopes: null,
    expiresAt: null,
    revokedAt: null,
    allowedNetworks: [],
  } as unknown as KeyStatus
}
