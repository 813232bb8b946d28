import { setTimeout as wait } from 'node:timers/promises'
import type { ServerFrame } from '@keyway/sdk/protocol'
import WebSocket from 'ws'
import { freePort } from '../packages/server/test/support/free-port.ts'
import { redisMissing, startRedis } from '../packages/server/test/support/redis.ts'
import { benchKey, postgresDatabase } from './support/databases.ts'
import { cpuSeconds, pinBench } from './support/machine.ts'
import { type RunningProcess, startKeyway } from './support/processes.ts'
import { QUICK, type Row, report, type Target } from './support/report.ts'

/**
 * Measures what messages between two nodes cost the other nodes of a service: events received and processor time of
 * each, with two, four and eight processes, with events over PostgreSQL and over Redis. The other nodes have no
 * agent of the senders' owner, or one each.
 */

const NODE_COUNTS = [2, 4, 8]
const SENDERS = 10
/** Below the hub's rate limit of frames for one connection. */
const MESSAGES_A_SECOND = 80
const SECONDS = QUICK ? 4 : 10
/** Delay before the measurement, until heartbeats have run and agents are connected. */
const SETTLE_MS = 5000
const WARM_UP_MS = 1000
/** Allowance for events that carry no messages of agents, such as those that test the carrier. */
const ALLOWED_EVENTS_A_SECOND = 5

pinBench()
await using database = await postgresDatabase(SENDERS + 1)
const redis = redisMissing() ? null : await startRedis()
const rows: Row[] = []
const targets: Target[] = []
for (const [carrier, url] of [
  ['PostgreSQL', null],
  ['Redis', redis?.url],
] as const) {
  if (url === undefined) continue
  for (const onAllNodes of [false, true]) {
    const measurements: Measurement[] = []
    for (const count of NODE_COUNTS.slice(onAllNodes ? 1 : 0))
      measurements.push(await measure(count, url, onAllNodes))
    const owner = onAllNodes ? 'on all nodes' : 'on two nodes'
    for (const each of measurements) rows.push({ carrier, owner, ...toRow(each) })
    targets.push(...toTargets(`${carrier}, owner ${owner}`, measurements))
  }
}
await redis?.kill()
report('between-nodes', { 'Messages from node 1 to node 2': rows }, targets)

interface NodeLoad {
  eventsPerSecond: number
  cpuPercent: number
}

interface Measurement {
  count: number
  acknowledged: number
  sender: NodeLoad
  receiver: NodeLoad
  /** The maxima over the other nodes; 0 if there are none. */
  others: NodeLoad
}

async function measure(count: number, eventsUrl: string | null, onAllNodes: boolean): Promise<Measurement> {
  const settings = {
    ...database.settings,
    KEYWAY_PUBLIC_URL: 'http://localhost:9',
    ...(eventsUrl && { KEYWAY_EVENTS_URL: eventsUrl }),
  }
  const nodes: RunningProcess[] = []
  try {
    for (let n = 0; n < count; n++) {
      // The port is chosen here, and not read from the node's output: the URL that a node prints is the public one, the
      // same for all nodes.
      const port = await freePort()
      nodes.push({ ...(await startKeyway({ ...settings, KEYWAY_PORT: String(port) })), port })
    }
    return await measureMessages(nodes, onAllNodes)
  } finally {
    await Promise.all(nodes.map(node => node[Symbol.asyncDispose]()))
  }
}

async function measureMessages(nodes: readonly RunningProcess[], onAllNodes: boolean): Promise<Measurement> {
  const [senderNode, receiverNode, ...otherNodes] = nodes as [
    RunningProcess,
    RunningProcess,
    ...RunningProcess[],
  ]
  // The keys of the filled database from 0 to 9 belong to one user, so that all these agents have one owner.
  const receiver = await connect(receiverNode, benchKey(0))
  const otherAgents: Agent[] = []
  for (const node of onAllNodes ? otherNodes : []) otherAgents.push(await connect(node, benchKey(1)))
  const senders: Agent[] = []
  for (let n = 0; n < SENDERS; n++) senders.push(await connect(senderNode, benchKey(n % SENDERS)))
  await wait(SETTLE_MS)
  // Messages are sent before the measurement too: the first ones go to all nodes with connections of the owner, until
  // those without the receiver have said so (hub/receivers.ts).
  await Promise.all(senders.map(sender => sendUntil(sender, receiver.id, performance.now() + WARM_UP_MS)))
  for (const sender of senders) sender.acknowledged = 0
  const samplesBefore = await Promise.all(nodes.map(sample))
  const endsAt = performance.now() + SECONDS * 1000
  await Promise.all(senders.map(sender => sendUntil(sender, receiver.id, endsAt)))
  const samplesAfter = await Promise.all(nodes.map(sample))
  const loads = nodes.map(
    (_, n): NodeLoad => ({
      eventsPerSecond: (samplesAfter[n]!.events - samplesBefore[n]!.events) / SECONDS,
      cpuPercent: ((samplesAfter[n]!.cpu - samplesBefore[n]!.cpu) / SECONDS) * 100,
    }),
  )
  const acknowledgedCount = senders.reduce((sum, sender) => sum + sender.acknowledged, 0)
  for (const { socket } of [receiver, ...senders, ...otherAgents]) socket.terminate()
  const otherLoads = loads.slice(2)
  return {
    count: nodes.length,
    acknowledged: acknowledgedCount / SECONDS,
    sender: loads[0]!,
    receiver: loads[1]!,
    others: {
      eventsPerSecond: Math.max(0, ...otherLoads.map(each => each.eventsPerSecond)),
      cpuPercent: Math.max(0, ...otherLoads.map(each => each.cpuPercent)),
    },
  }
}

interface Agent {
  socket: WebSocket
  id: string
  acknowledged: number
}

async function connect({ port }: RunningProcess, key: string): Promise<Agent> {
  const origin = `http://127.0.0.1:${port}`
  const answer = await fetch(`${origin}/auth/agent-token`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ api_key: key }),
  })
  if (!answer.ok) throw new Error(await answer.text())
  const { token } = (await answer.json()) as { token: string }
  const socket = new WebSocket(`ws://127.0.0.1:${port}/hub`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const agent: Agent = { socket, id: '', acknowledged: 0 }
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', (code, reason) => reject(new Error(`closed with ${code} ${reason}`)))
    socket.on('message', data => {
      const frame = JSON.parse(String(data)) as ServerFrame
      if (frame.type === 'ready') agent.id = frame.connection_id
      if (frame.type === 'ready') resolve()
      if (frame.type === 'sent') agent.acknowledged += frame.delivered
    })
  })
  return agent
}

async function sendUntil({ socket }: Agent, to: string, endsAt: number): Promise<void> {
  const startedAt = performance.now()
  for (let n = 0; performance.now() < endsAt; n++) {
    socket.send(JSON.stringify({ type: 'send', id: `${n}`, to, data: 'x'.repeat(200) }))
    const nextSendAt = startedAt + ((n + 1) * 1000) / MESSAGES_A_SECOND
    if (nextSendAt > performance.now()) await wait(nextSendAt - performance.now())
  }
}

async function sample({ pid, port }: RunningProcess): Promise<{ events: number; cpu: number }> {
  const cpu = cpuSeconds(pid)
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return { cpu, events: Number(/^keyway_events_received_total (\d+)/m.exec(text)?.[1] ?? Number.NaN) }
}

function toRow({ count, acknowledged, sender, receiver, others }: Measurement): Row {
  return {
    nodes: count,
    'messages/s': Math.round(acknowledged),
    'events/s: sender': Math.round(sender.eventsPerSecond),
    receiver: Math.round(receiver.eventsPerSecond),
    others: Number(others.eventsPerSecond.toFixed(1)),
    'CPU %: sender': Math.round(sender.cpuPercent),
    'receiver ': Math.round(receiver.cpuPercent),
    'others ': Number(others.cpuPercent.toFixed(1)),
  }
}

function toTargets(conditions: string, measurements: readonly Measurement[]): Target[] {
  const [fewestNodes, mostNodes] = [measurements[0]!, measurements.at(-1)!]
  return [
    {
      what: `events of an uninvolved node of ${mostNodes.count}, ${conditions}`,
      wanted: `≤ ${ALLOWED_EVENTS_A_SECOND}/s`,
      measured: `${mostNodes.others.eventsPerSecond.toFixed(1)}/s`,
      reached: mostNodes.others.eventsPerSecond <= ALLOWED_EVENTS_A_SECOND,
    },
    {
      what: `events that a message costs the sending node with ${mostNodes.count} nodes, of those with ${fewestNodes.count}, ${conditions}`,
      wanted: '≤ 1.1',
      measured: (eventsPerMessage(mostNodes) / eventsPerMessage(fewestNodes)).toFixed(2),
      reached: eventsPerMessage(mostNodes) <= 1.1 * eventsPerMessage(fewestNodes),
    },
  ]
}

function eventsPerMessage({ sender, acknowledged }: Measurement): number {
  return sender.eventsPerSecond / acknowledged
}
