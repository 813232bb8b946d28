import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { RELAY_TIMEOUT_MS } from '../../src/hub/node-relay.ts'
import { connectHub, createKey, exchange, type HubSocket } from '../support/nodes.ts'

export interface Person {
  token: string
}

const ROUNDS = 10
/** How long nodes take to list each other, by heartbeats every two seconds. */
const ACQUAINTANCE_MS = 10_000
/** Time after the last answer within which delivered messages must arrive. */
const ARRIVAL_MS = 500

/**
 * Sends messages between two agents on the first node and one on the second, and compares `delivered` with the messages
 * that arrived. Between versions nothing is delivered, and `delivered` is 0. Nodes of one version await responses for
 * a second, so only on a very slow machine `delivered` may be lower than the number of messages that arrived.
 */
export async function checkMessages(
  origins: readonly string[],
  person: Person,
  isMixed: boolean,
): Promise<{ count: number; violations: string[] }> {
  const { key } = (await createKey(origins[0]!, person.token)).body
  const open = async (origin: string) => connectHub(origin, (await exchange(origin, key)).body.token)
  const [a, b, far] = [await open(origins[0]!), await open(origins[0]!), await open(origins[1]!)]
  const agents = [a, b, far]
  const across = isMixed ? 0 : 1
  try {
    if (!isMixed) await untilAcquainted(a, far)
    const sent = await Promise.all(
      Array.from({ length: ROUNDS }, () => [
        send(a, b.id, 1),
        send(a, far.id, across),
        send(far, a.id, across),
        send(a, 'all', 1 + across),
        send(far, 'all', 2 * across),
      ]).flat(),
    )
    await wait(ARRIVAL_MS)
    const isSlow = !isMixed && sent.some(({ tookMs }) => tookMs >= RELAY_TIMEOUT_MS)
    const violations = sent.flatMap(each => judge(each, agents, isSlow))
    return { count: sent.length, violations: [...new Set(violations)] }
  } finally {
    for (const { socket } of agents) socket.terminate()
  }
}

async function untilAcquainted(here: HubSocket, there: HubSocket): Promise<void> {
  const startedAt = performance.now()
  for (const [from, to] of [
    [here, there],
    [there, here],
  ] as const)
    while ((await send(from, to.id, 1)).delivered === 0 && performance.now() - startedAt < ACQUAINTANCE_MS)
      await wait(100)
}

interface Sent {
  text: string
  expected: number
  delivered: number
  tookMs: number
}

async function send(from: HubSocket, to: string, expected: number): Promise<Sent> {
  const id = randomUUID()
  const sentAt = performance.now()
  from.send({ type: 'send', id, to, data: id })
  const answer = await from.next(frame => frame.id === id && frame.type !== 'message')
  return { text: id, expected, delivered: answer.delivered, tookMs: performance.now() - sentAt }
}

function judge({ text, expected, delivered }: Sent, agents: readonly HubSocket[], isSlow: boolean): string[] {
  const arrived = agents.flatMap(({ frames }) => frames.filter(({ data }) => data === text)).length
  const found: string[] = []
  if (arrived !== expected) found.push(`a message reached ${arrived} agents instead of ${expected}`)
  if (delivered > arrived || (delivered < arrived && !isSlow))
    found.push(`delivered was ${delivered}, and ${arrived} messages arrived`)
  return found
}
