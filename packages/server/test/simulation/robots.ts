import { Agent, type Json } from '@keyway/sdk'
import { KeywayError } from '../../src/errors.ts'
import { networkOf } from '../../src/network.ts'
import type { AgentHistory } from '../hub/support/resume-history.ts'
import { type AgentEnd, Line } from '../hub/support/simulated-network.ts'
import type { Ports } from './calls.ts'
import { type Scheduler, SimulatedProcess } from './scheduler.ts'
import type { World } from './world.ts'

const STATUS_BY_CODE: Record<string, number> = { unavailable: 503, rate_limited: 429 }

/** An agent of the SDK in a process of its own, on the simulated network. */
export class Robot extends SimulatedProcess {
  readonly history: AgentHistory
  readonly agent: Agent
  line: Line | null = null
  sent = 0
  readonly #world: World

  constructor(world: World, name: string, { id, key }: { id: string; key: string }) {
    super(name)
    this.#world = world
    const robot = this
    class WebSocket {
      constructor(_url: string, protocols: string[]) {
        // biome-ignore lint/correctness/noConstructorReturn: the platform's class is replaced as a whole
        return robot.#dial(protocols) as never
      }
    }
    this.agent = world.scheduler.within(
      this,
      () =>
        new Agent({
          url: world.config.publicUrl,
          apiKey: key,
          fetch: (_url, init) => this.#exchange(JSON.parse(String(init?.body))),
          WebSocket: WebSocket as never,
        }),
    )
    this.history = {
      keyId: id,
      received: [],
      sent: [],
      gaps: [],
      abandoned: [],
      isConnected: () => this.agent.connected,
    }
    this.#record()
  }

  #record(): void {
    const { history, agent } = this
    const note = (what: string) => this.#world.note(`${this.name}: ${what}`)
    agent.on('message', ({ data }) => {
      note(`received ${data}`)
      history.received.push(data as never)
    })
    let isReady = false
    agent.on('ready', ({ connectionId }) => {
      isReady = true
      note(`is connected as ${connectionId}`)
    })
    agent.on('disconnected', ({ reason }) => {
      if (!isReady) history.abandoned?.push(this.#world.now)
      isReady = false
      note(`was disconnected: ${reason}`)
    })
    agent.on('gap', () => {
      note('was told of a gap')
      history.gaps.push(this.#world.now)
      for (const sent of history.sent) if (sent.outcome === null) sent.isUncertain = true
    })
    agent.on('stopped', ({ error }) => {
      if (error) history.stopped = error.message
    })
  }

  /** Sends to another robot's key, to its connection, or to all. */
  send(robots: readonly Robot[]): void {
    const { random } = this.#world
    const receiver = random.next() < 0.2 ? null : random.pick(robots)
    if (receiver === this) return
    const n = this.sent++
    const data = [robots.indexOf(this), n, ''] satisfies Json
    const sentMessage: AgentHistory['sent'][number] = {
      n,
      to: receiver ? robots.indexOf(receiver) : null,
      at: this.#world.now,
      outcome: null,
      isUncertain: false,
    }
    this.history.sent.push(sentMessage)
    this.#world.note(`${this.name}: sends ${data} to ${sentMessage.to ?? 'all'}`)
    const connectionId = random.next() < 0.3 && receiver?.agent.connection?.connectionId
    const target = receiver ? connectionId || receiver.history.keyId : 'all'
    this.#world.scheduler.within(this, () =>
      this.agent.send(target, data).then(
        ({ delivered, held = 0 }) => {
          sentMessage.outcome = { delivered, held }
        },
        error => {
          sentMessage.outcome = { delivered: 0, held: 0, error: String(error.code) }
        },
      ),
    )
  }

  /** The answer to the exchange of the key, as over HTTP. */
  async #exchange({ api_key: key }: { api_key: string }): Promise<Response> {
    const caller = { address: '192.0.2.9', network: networkOf('192.0.2.9'), client: 'agent' }
    const work = ({ agentTokens }: Ports) => agentTokens.exchange(key, undefined, caller)
    try {
      const { token, agentId, expiresIn } = await this.#world.calls.request(this, 'agent token', work)
      return Response.json({ token, agent_id: agentId, expires_in: expiresIn })
    } catch (error) {
      if (!(error instanceof KeywayError)) throw new TypeError('fetch failed')
      const status = STATUS_BY_CODE[error.code] ?? 401
      return Response.json({ code: error.code, status, detail: error.message }, { status })
    }
  }

  #dial(protocols: string[]): AgentEnd {
    const { world, node } = { world: this.#world, node: this.#world.anyNode() }
    const line = new Line(
      world.random,
      () => world.now,
      createLineScheduler(world.scheduler, this, node ?? this),
    )
    this.line = line
    const isOpen = node?.isReady && !node.isDraining
    line.connect(isOpen ? () => void node.accept(line, Line.read(protocols)) : null)
    return line.agent
  }
}

/** Returns a function that schedules a callback in the process of the agent or of the node. */
function createLineScheduler(scheduler: Scheduler, agent: SimulatedProcess, node: SimulatedProcess) {
  return (side: 'agent' | 'server', ms: number, callback: () => void) =>
    void scheduler.after(side === 'agent' ? agent : node, ms, `line to ${side}`, callback)
}
