import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { RELAY_TIMEOUT_MS } from '../../src/hub/node-relay.ts'
import { connectHub, createKey, exchange, type HubSocket } from '../support/nodes.ts'

export interface Person {
  token: string
}

const ROUNDS = 10
/** Maximum time until nodes list each other, which they learn from heartbeats every two seconds. */
const MUTUAL_LISTING_MS = 10_000
/** Time after the last answer within which delivered messages must arrive. */
const ARRIVAL_MS = 500

/**
 * Sends messages between two agents on the first node and one on the second, and compares `delivered` with the messages
 * that arrived. If `isMixed`, one node has the previous version, which does not read sealed events: no message reaches
 * the other node. Nodes of one version await each other's response for a second, so on a very slow machine `delivered`
 * may be lower than the number of messages that arrived.
 */
export async function checkMessages(
  origins: readonly string[],
  person: Person,
  isMixed: boolean,
): Promise<{ count: number; violations: string[] }> {
  const { key } = (await createKey(origins[0]!, person.token)).body
  const connectTo = async (origin: string) => connectHub(origin, (await exchange(origin, key)).body.token)
  const [a, b, remote] = [
    await connectTo(origins[0]!),
    await connectTo(origins[0]!),
    await connectTo(origins[1]!),
  ]
  const agents = [a, b, remote]
  const expectedAcrossNodes = isMixed ? 0 : 1
  try {
    if (!isMixed) await untilNodesListEachOther(a, remote)
    const sentMessages = await Promise.all(
      Array.from({ length: ROUNDS }, () => [
        send(a, b.id, 1),
        send(a, remote.id, expectedAcrossNodes),
        send(remote, a.id, expectedAcrossNodes),
        send(a, 'all', 1 + expectedAcrossNodes),
        send(remote, 'all', 2 * expectedAcrossNodes),
      ]).flat(),
    )
    await wait(ARRIVAL_MS)
    const isMachineSlow = !isMixed && sentMessages.some(({ tookMs }) => tookMs >= RELAY_TIMEOUT_MS)
    const violations = sentMessages.flatMap(each => violationsOf(each, agents, isMachineSlow))
    return { count: sentMessages.length, violations: [...new Set(violations)] }
  } finally {
    for (const { socket } of agents) socket.terminate()
  }
}

async function untilNodesListEachOther(agentOfA: HubSocket, agentOfB: HubSocket): Promise<void> {
  const startedAt = performance.now()
  for (const [from, to] of [
    [agentOfA, agentOfB],
    [agentOfB, agentOfA],
  ] as const)
    while ((await send(from, to.id, 1)).delivered === 0 && performance.now() - startedAt < MUTUAL_LISTING_MS)
      await wait(100)
}

interface SentProbe {
  text: string
  expected: number
  delivered: number
  tookMs: number
}

async function send(from: HubSocket, to: string, expected: number): Promise<SentProbe> {
  const id = randomUUID()
  const sentAt = performance.now()
  from.send({ type: 'send', id, to, data: id })
  const answer = await from.next(frame => frame.id === id && frame.type !== 'message')
  return { text: id, expected, delivered: answer.delivered, tookMs: performance.now() - sentAt }
}

function violationsOf(
  { text, expected, delivered }: SentProbe,
  agents: readonly HubSocket[],
  isMachineSlow: boolean,
): string[] {
  const arrivedCount = agents.flatMap(({ frames }) => frames.filter(({ data }) => data === text)).length
  const violations: string[] = []
  if (arrivedCount !== expected)
    violations.push(`a message reached ${arrivedCount} agents instead of ${expected}`)
  if (delivered > arrivedCount || (delivered < arrivedCount && !isMachineSlow))
    violations.push(`delivered was ${delivered}, and ${arrivedCount} messages arrived`)
  return violations
}
