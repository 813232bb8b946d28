import { Agent, type Json } from '@keyway/sdk'
import { newId } from '../../../src/ids.ts'
import { createTestClock } from '../../support/clock.ts'
import type { Random } from '../../support/random.ts'
import type { AgentHistory } from './resume-history.ts'
import { SharedState, SimulatedHub } from './simulated-hub.ts'
import { type AgentEnd, Line } from './simulated-network.ts'

/** Milliseconds of one simulated step. */
const STEP_MS = 10

interface Member {
  agent: Agent
  history: AgentHistory
  line: Line | null
  sent: number
}

interface Timers {
  tick(ms: number): void
}

/**
 * Agents of the SDK on several nodes, all with their real code. The network, the database, the transport of events
 * between nodes, and time are simulated, and everything that happens follows from one seed.
 */
export class ResumeWorld {
  readonly clock = createTestClock()
  readonly members: Member[] = []
  nodes: SimulatedHub[] = []
  readonly shared: SharedState
  /** Whether half of the messages name the receiver's connection instead of its key. */
  namesConnections = false
  readonly #random: Random
  readonly #timers: Timers
  #ending: Promise<void>[] = []

  constructor(random: Random, timers: Timers) {
    this.#random = random
    this.#timers = timers
    this.shared = new SharedState(random, this.clock)
  }

  get histories(): AgentHistory[] {
    return this.members.map(({ history }) => history)
  }

  startNode(): void {
    const node = new SimulatedHub(this.shared, this.clock)
    void node.start().then(() => this.nodes.push(node))
  }

  addAgent(): void {
    const keyId = newId(100 + this.members.length)
    const world = this
    class WebSocket {
      constructor(_url: string, protocols: string[]) {
        // biome-ignore lint/correctness/noConstructorReturn: the platform's class is replaced as a whole
        return world.#connect(member, protocols) as never
      }
    }
    const agent = new Agent({
      url: 'https://keyway.example.com',
      getToken: async () => ({ token: keyId, expires_in: 100_000 }),
      WebSocket: WebSocket as never,
      clock: {
        now: () => this.clock.now(),
        random: () => this.#random.next(),
        after: (ms, callback) => {
          const timer = setTimeout(callback, ms)
          return () => clearTimeout(timer)
        },
      },
    })
    const history: AgentHistory = {
      keyId,
      received: [],
      sent: [],
      gaps: [],
      isConnected: () => agent.connected,
    }
    const member: Member = { agent, history, line: null, sent: 0 }
    agent.on('message', ({ data }) => history.received.push(data as never))
    agent.on('gap', () => {
      history.gaps.push(this.clock.now())
      for (const sent of history.sent) if (sent.outcome === null) sent.isUncertain = true
    })
    agent.on('stopped', ({ error }) => {
      if (error) history.stopped = error.message
    })
    this.members.push(member)
  }

  /** Has an agent send a message to one other, or to all. */
  send(
    from: Member,
    padding = 0,
    to = this.#random.next() < 0.2 ? null : this.#random.pick(this.members),
  ): void {
    if (to === from) return
    const [sender, n] = [this.members.indexOf(from), from.sent++]
    const data = [sender, n, 'x'.repeat(padding)] satisfies Json
    const sent: AgentHistory['sent'][number] = {
      n,
      to: to ? this.members.indexOf(to) : null,
      at: this.clock.now(),
      outcome: null,
      isUncertain: false,
    }
    from.history.sent.push(sent)
    from.agent.send(to ? this.#nameOf(to) : 'all', data).then(
      ({ delivered, held = 0 }) => {
        sent.outcome = { delivered, held }
      },
      error => {
        sent.outcome = { delivered: 0, held: 0, error: String(error.code) }
      },
    )
  }

  /** A target for messages to this agent: its key, or the id of its current connection. */
  #nameOf({ agent, history }: Member): string {
    const usesConnectionId = this.namesConnections && this.#random.next() < 0.5
    return (usesConnectionId && agent.connection?.connectionId) || history.keyId
  }

  /** Breaks an agent's line. Each side notices after this many milliseconds; if null, only by its own timeouts. */
  cut(member: Member, agentNoticeMs: number | null, serverNoticeMs: number | null): void {
    if (member.line?.isEstablished) member.line.cut(agentNoticeMs, serverNoticeMs)
  }

  pause(member: Member, ms: number): void {
    if (member.line) member.line.pausedUntil = this.clock.now() + ms
  }

  /** Shuts a node down while another one starts, as in a rolling restart. */
  replace(node: SimulatedHub): void {
    this.startNode()
    this.#ending.push(node.shutDown().then(() => this.#remove(node)))
  }

  kill(node: SimulatedHub): void {
    this.#remove(node)
    node.kill()
  }

  async run(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      this.clock.advance(STEP_MS)
      this.#timers.tick(STEP_MS)
      await new Promise(setImmediate)
    }
  }

  /** Closes all agents and shuts down all nodes. */
  async end(): Promise<void> {
    for (const { agent } of this.members) agent.close()
    for (const node of this.nodes.splice(0)) this.#ending.push(node.end())
    await this.run(5000)
  }

  #connect(member: Member, protocols: string[]): AgentEnd {
    const line = new Line(this.#random, () => this.clock.now())
    member.line = line
    const node = this.nodes.length > 0 ? this.#random.pick(this.nodes) : null
    const isOpen = node && !node.isDraining && !node.isDead
    line.connect(isOpen ? () => node.accept(line, Line.read(protocols), this.clock.now()) : null)
    return line.agent
  }

  #remove(node: SimulatedHub): void {
    this.nodes = this.nodes.filter(each => each !== node)
  }
}
