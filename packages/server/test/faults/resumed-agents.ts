import { setTimeout as wait } from 'node:timers/promises'
import { Agent } from '@keyway/sdk'
import { WebSocket } from 'ws'
import { type AgentHistory, checkHistories, type SentMessage } from '../hub/support/resume-history.ts'
import { call, createKey, verifyLink } from '../support/nodes.ts'
import { startRedis } from '../support/redis.ts'
import { startBalancer } from './balancer.ts'
import { type ScenarioResult, type World, withWorld } from './world.ts'

const AGENTS = 8
const SEND_EVERY_MS = 15
const BREAK_EVERY_MS = 200
/** The share of faults in which the agent stops reading for a while, instead of losing its connection. */
const READ_PAUSE_SHARE = 0.2
const READ_PAUSE_MS = 2000
const ROUNDS = 10
/** How long the load runs before each fault, and after the last one. */
const PAUSE_MS = 3000
/** How long a node is cut off or suspended. */
const OUTAGE_MS = 3000
/**
 * Longer than an agent needs after the last fault: for a back-off, attempts to resume its connection while two nodes do
 * not answer, and the acknowledgement of its messages.
 */
const SETTLE_MS = 30_000

interface Member {
  agent: Agent
  history: AgentHistory
  sockets: Set<WebSocket>
}

type Fault = (world: World, node: number) => Promise<void>

/** The faults: each round applies the next one, to the next node. */
const FAULTS: readonly Fault[] = [drainAndRestart, cutOff, freeze, drainAndRestart, killAndRestart]

/**
 * Agents send to each other while their connections break, some of them read nothing for a while, and three nodes are
 * restarted, cut off from the database and the other nodes, suspended and killed. Then all histories are checked: each
 * message arrived once and in order, or its receiver got a `gap` event.
 */
export async function resumeAgents(
  carrier: 'postgres' | 'redis',
  seed: number,
  scale: number,
): Promise<ScenarioResult> {
  const redis = carrier === 'redis' ? await startRedis() : null
  const settings = (node: number, { eventProxies }: World): Record<string, string> => {
    if (!redis) return {}
    eventProxies[node]!.forwardTo(redis.url)
    return { KEYWAY_EVENTS_URL: eventProxies[node]!.through(redis.url) }
  }
  try {
    return await withWorld(seed, { engine: 'postgres', nodes: 3, people: 1, settings }, world =>
      world.underLoad(async () => {
        const balancer = await startBalancer(world.origins)
        try {
          await exchangeMessages(world, balancer.origin, Math.max(1, Math.round(ROUNDS * scale)))
        } finally {
          await balancer.close()
        }
      }),
    )
  } finally {
    await redis?.kill()
  }
}

async function exchangeMessages(world: World, origin: string, rounds: number): Promise<void> {
  const members = await connectMembers(world, origin)
  let isOver = false
  const repeat = async (everyMs: number, act: () => void) => {
    while (!isOver) {
      act()
      await wait(everyMs)
    }
  }
  const activities = [
    repeat(SEND_EVERY_MS, () => send(world, members)),
    repeat(BREAK_EVERY_MS, () => {
      world.faults++
      const pausesReading = world.random.below(100) < READ_PAUSE_SHARE * 100
      for (const socket of world.random.pick(members).sockets)
        pausesReading ? stopReadingForAWhile(socket) : socket.terminate()
    }),
  ]
  for (let round = 0; round < rounds; round++) {
    await wait(PAUSE_MS)
    world.faults++
    await FAULTS[round % FAULTS.length]!(world, round % world.origins.length)
  }
  await wait(PAUSE_MS)
  isOver = true
  await Promise.all(activities)
  for (let waited = 0; waited < SETTLE_MS && !isSettled(members); waited += 100) await wait(100)
  await wait(1000)
  report(world, members)
  for (const { agent } of members) agent.close()
}

async function drainAndRestart(world: World, node: number): Promise<void> {
  await world.stopNode(node)
  await world.startNode(node)
}

async function killAndRestart(world: World, node: number): Promise<void> {
  await world.killNode(node)
  await world.startNode(node)
}

/** Cuts a node off: its agents still reach it, but it reaches neither other nodes nor the database. */
async function cutOff({ databaseProxies, eventProxies }: World, node: number): Promise<void> {
  const proxies = [databaseProxies[node]!, eventProxies[node]!]
  for (const proxy of proxies) proxy.cut()
  await wait(OUTAGE_MS)
  for (const proxy of proxies) proxy.heal()
}

/** Suspends a node: its connections stay open, and nothing is answered. */
async function freeze({ processes }: World, node: number): Promise<void> {
  const { pid } = processes[node]!
  process.kill(pid, 'SIGSTOP')
  await wait(OUTAGE_MS)
  process.kill(pid, 'SIGCONT')
}

function stopReadingForAWhile(socket: WebSocket): void {
  if (socket.readyState !== WebSocket.OPEN) return
  socket.pause()
  setTimeout(() => socket.resume(), READ_PAUSE_MS)
}

async function connectMembers(world: World, origin: string): Promise<Member[]> {
  const email = 'resumed@example.com'
  await call(origin, 'POST', '/auth/send-magic-link', { body: { email } })
  const session = (await verifyLink(origin, email, (await world.target.mail(email, 10_000))!)).body
  const members: Member[] = []
  for (let n = 0; n < AGENTS; n++) {
    const { key, id } = (await createKey(origin, session.access_token)).body
    members.push(createMember(origin, key, id))
  }
  while (!members.every(({ agent }) => agent.connected)) await wait(100)
  return members
}

function createMember(origin: string, apiKey: string, keyId: string): Member {
  const sockets = new Set<WebSocket>()
  class Socket extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols)
      sockets.add(this)
      this.on('close', () => sockets.delete(this))
    }
  }
  const agent = new Agent({ url: origin, apiKey, WebSocket: Socket as never })
  const history: AgentHistory = {
    keyId,
    received: [],
    sent: [],
    gaps: [],
    isConnected: () => agent.connected,
  }
  agent.on('message', ({ data }) => history.received.push(data as never))
  agent.on('gap', () => {
    history.gaps.push(performance.now())
    for (const sent of history.sent) if (sent.outcome === null) sent.isUncertain = true
  })
  agent.on('stopped', ({ error }) => {
    if (error) history.stopped = error.message
  })
  return { agent, history, sockets }
}

function send(world: World, members: readonly Member[]): void {
  const [sender, to] = [world.random.below(members.length), world.random.below(members.length)]
  if (sender === to) return
  const { agent, history } = members[sender]!
  const n = history.sent.length
  const message: SentMessage = { n, to, at: performance.now(), outcome: null, isUncertain: false }
  history.sent.push(message)
  agent.send(members[to]!.history.keyId, [sender, n, '']).then(
    ({ delivered, held = 0 }) => {
      message.outcome = { delivered, held }
    },
    error => {
      message.outcome = { delivered: 0, held: 0, error: String(error.code) }
    },
  )
}

function isSettled(members: readonly Member[]): boolean {
  return members.every(
    ({ history }) => history.isConnected() && history.sent.every(({ outcome }) => outcome !== null),
  )
}

function report(world: World, members: readonly Member[]): void {
  const histories = members.map(({ history }) => history)
  try {
    checkHistories(histories, false)
  } catch (error) {
    world.history.violations.push((error as Error).message)
  }
  const sum = (of: (history: AgentHistory) => number) => histories.reduce((all, each) => all + of(each), 0)
  const [received, gaps] = [sum(each => each.received.length), sum(each => each.gaps.length)]
  world.notes.push(`${received} messages received, ${gaps} gaps reported`)
}
