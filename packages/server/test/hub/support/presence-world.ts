import type { MockTimers } from 'node:test'
import type { ServerFrame } from '@keyway/sdk/protocol'
import type { RelayNotice } from '../../../src/events.ts'
import { AgentConnection, type HubSocket } from '../../../src/hub/agent-connection.ts'
import { MessageBudget, MessageLog } from '../../../src/hub/message-log.ts'
import { createPresenceFeed } from '../../../src/hub/presence-feed.ts'
import type { PresenceRow } from '../../../src/hub/presence-store.ts'
import { NODE_HEARTBEAT_MS, NODE_TIMEOUT_MS } from '../../../src/hub/presence-store.ts'
import { Registry } from '../../../src/hub/registry.ts'
import { createWatches } from '../../../src/hub/watches.ts'
import { newId } from '../../../src/ids.ts'
import { createLog } from '../../../src/log.ts'
import { createTestClock } from '../../support/clock.ts'
import type { Random } from '../../support/random.ts'
import { textOf } from './raw-frames.ts'

/** Milliseconds of one simulated step. */
const STEP_MS = 10
/** Delay until a change of a presence row is in the database. */
const RECORD_MS = 200
const TICK_MS = 500
const MAX_DELAY_MS = 60

export const USER = newId(1)
const KEYS = [newId(2), newId(3)]

export interface Watcher {
  connection: AgentConnection
  /** Received frames, in order. */
  frames: ServerFrame[]
}

interface Node {
  id: string
  registry: Registry
  feed: ReturnType<typeof createPresenceFeed>
  watches: ReturnType<typeof createWatches>
  /** Ids of the other nodes that this node knows, from its last heartbeat and from notices since. */
  others: string[]
  beatAt: number
  watchers: Map<string, Watcher>
}

interface Notice {
  from: string
  to: string
  notice: RelayNotice
  at: number
}

/**
 * Several nodes with the hub's own code for presence, over a simulated network and database. The network keeps the
 * order of notices between two nodes, delays them, and loses some (`loss`, `cut`); changes reach the database late.
 */
export class PresenceWorld {
  readonly clock = createTestClock()
  readonly nodes = new Map<string, Node>()
  readonly watchers: Watcher[] = []
  /** Probability that a notice is lost. */
  loss = 0
  /** Pairs of a sender and a receiver, as `FROM TO` with the nodes' ids, between which every notice is lost. */
  readonly cut = new Set<string>()
  readonly #random: Random
  readonly #timers: MockTimers
  readonly #rows = new Map<string, PresenceRow>()
  readonly #seen = new Map<string, number>()
  #recording: { at: number; write(): void }[] = []
  #wire: Notice[] = []
  #counter = 10

  constructor(random: Random, timers: MockTimers) {
    this.#random = random
    this.#timers = timers
  }

  /** Ids of the connections in the registries of all nodes, which watchers must agree with in the end. */
  get truth(): string[] {
    return [...this.nodes.values()].flatMap(({ registry }) => [...registry.byId.keys()]).sort()
  }

  startNode(): void {
    const id = newId(++this.#counter)
    const registry = new Registry()
    const notify = (to: string, notice: RelayNotice) =>
      to === id ? this.#receive(node, id, notice) : this.#publish(id, to, notice)
    const node: Node = {
      id,
      registry,
      feed: createPresenceFeed({ clock: this.clock, registry, notify }),
      watches: createWatches({
        clock: this.clock,
        log: createLog('silent'),
        nodeId: id,
        locations: { knownNodes: () => node.others },
        ownerLimits: { mayDeliver: () => true, chargeDeliveries: () => {} },
        notify,
        presence: {
          currentPeers: () => node.others,
          otherNodes: () => node.others,
          recordedOn: async nodeIds => [...this.#rows.values()].filter(row => nodeIds.includes(row.nodeId)),
        },
      }),
      others: [],
      beatAt: 0,
      watchers: new Map(),
    }
    this.nodes.set(id, node)
    this.#beat(node)
    for (const other of this.nodes.values()) if (other !== node) this.#learn(other, id)
  }

  /** Removes a node with its connections as a crash does, without a notice to other nodes. */
  killNode(id: string): void {
    const node = this.nodes.get(id)!
    this.nodes.delete(id)
    for (const watcher of node.watchers.values()) this.#forget(watcher)
    node.feed.stop()
    this.#wire = this.#wire.filter(notice => notice.from !== id)
  }

  connect(nodeId: string, id = newId(this.clock.now())): void {
    const node = this.nodes.get(nodeId)!
    const frames: ServerFrame[] = []
    const socket = {
      readyState: 1,
      bufferedAmount: 0,
      writeFrame: (frame: Buffer) => frames.push(JSON.parse(textOf(frame))),
      stream: { cork() {}, uncork() {} },
      close() {},
      terminate() {},
    }
    const claims = { agentId: USER, keyId: this.#random.pick(KEYS), scopes: null, expiresAt: 0 }
    const caller = { address: '::1', network: '::1', client: null }
    const connection = new AgentConnection(
      id,
      socket as unknown as HubSocket,
      claims,
      caller,
      this.clock.now(),
      {
        deregister: (gone, reason) => this.#deregister(node, gone, reason),
        hold: () => {},
        logClose: () => {},
      },
      new MessageLog(USER, new MessageBudget()),
    )
    connection.state = 'open'
    node.registry.add(connection)
    node.watchers.set(id, { connection, frames })
    node.feed.add(connection)
    this.#record(() => this.#rows.set(`${nodeId} ${id}`, connection.presenceRow(nodeId)))
  }

  disconnect(id: string): void {
    this.#find(id).connection.end('closed')
  }

  /** Moves a connection as a resumption on another node does; the notice of either node may arrive first. */
  move(id: string, to: string): void {
    this.disconnect(id)
    this.connect(to, id)
  }

  watch(id: string): void {
    const watcher = this.#find(id)
    if (!this.watchers.includes(watcher)) this.watchers.push(watcher)
    this.#nodeOf(id).watches.watch(watcher.connection)
  }

  unwatch(id: string): void {
    const watcher = this.#find(id)
    this.#forget(watcher)
    this.#nodeOf(id).watches.unwatch(watcher.connection)
    watcher.frames.push({ type: 'pong' }) // marks the end of the watch
  }

  async run(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      this.clock.advance(STEP_MS)
      this.#timers.tick(STEP_MS)
      this.#writeRows()
      this.#deliver()
      this.#runTimers()
      for (let turn = 0; turn < 4; turn++) await null // reads of the simulated database
    }
  }

  #find(id: string): Watcher {
    return this.#nodeOf(id).watchers.get(id)!
  }

  #nodeOf(id: string): Node {
    return [...this.nodes.values()].find(({ registry }) => registry.byId.has(id))!
  }

  #forget(watcher: Watcher): void {
    const index = this.watchers.indexOf(watcher)
    if (index >= 0) this.watchers.splice(index, 1)
  }

  #deregister(node: Node, connection: AgentConnection, reason: string): void {
    node.watches.remove(connection)
    node.feed.remove(connection, reason)
    node.registry.remove(connection)
    this.#forget(node.watchers.get(connection.id)!)
    node.watchers.delete(connection.id)
    this.#record(() => this.#rows.delete(`${node.id} ${connection.id}`))
  }

  #record(write: () => void): void {
    this.#recording.push({ at: this.clock.now() + RECORD_MS, write })
  }

  #writeRows(): void {
    while (this.#recording.length > 0 && this.#recording[0]!.at <= this.clock.now())
      this.#recording.shift()!.write()
  }

  #publish(from: string, to: string, notice: RelayNotice): void {
    if (this.cut.has(`${from} ${to}`) || this.#random.next() < this.loss) return
    const lastArrival = this.#wire.findLast(each => each.from === from && each.to === to)?.at ?? 0
    const at = Math.max(lastArrival, this.clock.now() + this.#random.between(0, MAX_DELAY_MS))
    this.#wire.push({ from, to, notice: JSON.parse(JSON.stringify(notice)), at })
  }

  #deliver(): void {
    const now = this.clock.now()
    const dueNotices = this.#wire.filter(({ at }) => at <= now)
    this.#wire = this.#wire.filter(({ at }) => at > now)
    for (const { from, to, notice } of dueNotices) {
      const node = this.nodes.get(to)
      if (!node) continue
      this.#learn(node, from)
      this.#receive(node, from, notice)
    }
  }

  #learn(node: Node, other: string): void {
    if (node.others.includes(other) || this.cut.has(`${other} ${node.id}`)) return
    node.others = [...node.others, other]
    node.watches.updateNodes()
  }

  #receive(node: Node, from: string, notice: RelayNotice): void {
    if (notice.op === 'presence') node.watches.receive(from, notice)
    else if (notice.op === 'watch') node.feed.watch(from, notice.userId, notice.have)
    else node.feed.unwatch(from, notice.userId)
  }

  #runTimers(): void {
    const now = this.clock.now()
    for (const node of [...this.nodes.values()]) {
      if (now % TICK_MS === 0) node.watches.tick()
      if (now - node.beatAt >= NODE_HEARTBEAT_MS) this.#beat(node)
    }
  }

  #beat(node: Node): void {
    const now = this.clock.now()
    node.beatAt = now
    this.#seen.set(node.id, now)
    node.others = [...this.#seen]
      .filter(([id, seenAt]) => id !== node.id && now - seenAt <= NODE_TIMEOUT_MS)
      .map(([id]) => id)
    node.watches.updateNodes()
  }
}
