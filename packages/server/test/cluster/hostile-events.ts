import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import {
  connectHub,
  createKey,
  createPrintedLinks,
  exchange,
  freshPostgres,
  type HubSocket,
  signIn,
  startNode,
  type TestNode,
} from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { Random } from '../support/random.ts'
import { startRedis } from '../support/redis.ts'
import { type RecordedMessage, tapPostgres, tapRedis, type Wiretap } from './wiretap.ts'

export type CarrierName = 'PostgreSQL' | 'Redis'

export interface TappedNodes {
  a: TestNode
  b: TestNode
  tap: Wiretap
  userId: string
  accessToken: string
  keyId: string
  startAnother(): Promise<TestNode>
  connect(to: TestNode): Promise<HubSocket>
}

/** Two nodes, a user with a key, and an attacker on PostgreSQL or Redis, which carries the events between the nodes. */
export async function openTappedNodes(t: TestContext, carrier: CarrierName): Promise<TappedNodes> {
  const url = await freshPostgres(t)
  const settings: Record<string, string> = { KEYWAY_DATABASE_URL: url }
  if (carrier === 'Redis') settings.KEYWAY_EVENTS_URL = (await startRedis(t)).url
  const tap = carrier === 'Redis' ? await tapRedis(t, settings.KEYWAY_EVENTS_URL!) : await tapPostgres(t, url)
  const links = createPrintedLinks()
  const a = await startNode(t, settings, links)
  const b = await startNode(t, settings, links)
  await until('both nodes receive events', () =>
    [a, b].every(node => node.services.storage.eventsHealth().listening),
  )
  await until('the nodes list each other', () => [a, b].every(node => node.hub.health().otherNodes === 1))
  await tap.follow((await a.services.storage.store.presence.nodes(0)).map(({ id }) => id))
  const session = await signIn(a.origin, links, 'person@example.com')
  const { id, key } = (await createKey(a.origin, session.access_token)).body
  return {
    a,
    b,
    tap,
    userId: session.user.id,
    accessToken: session.access_token,
    keyId: id,
    startAnother: () => startNode(t, settings, links),
    connect: async to => connectHub(to.origin, (await exchange(a.origin, key)).body.token),
  }
}

export async function sendAndReceive(from: HubSocket, to: HubSocket, data: string): Promise<void> {
  const id = randomUUID()
  from.send({ type: 'send', id, to: to.id, data })
  const acknowledgement = await from.next(frame => frame.type === 'sent' && frame.id === id)
  assert.equal(acknowledgement.delivered, 1)
  await to.next(frame => frame.type === 'message' && frame.data === data)
}

const BATCH = 500
/** PostgreSQL's maximum length of a notification, in bytes. */
const NOTIFY_LIMIT = 7_999

/**
 * Publishes `count` notifications, invented or derived from recorded ones (bit-flipped, truncated, replayed), with
 * genuine multi-part messages in between. Asserts that they have no effect.
 */
export async function fuzzEvents(t: TestContext, carrier: CarrierName, count: number): Promise<void> {
  const nodes = await openTappedNodes(t, carrier)
  const { a, b, tap } = nodes
  const agentOfA = await nodes.connect(a)
  const agentOfB = await nodes.connect(b)
  await causeEveryEvent(nodes, agentOfA, agentOfB)
  const genuineMessages = tap.recorded.slice()
  const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
  t.diagnostic(`FUZZ_SEED=${seed}, ${genuineMessages.length} recorded`)
  const forge = createForger(nodes, genuineMessages, new Random(seed))
  const frameCountBefore = agentOfB.frames.length

  let sentCount = 0
  for (let published = 0; published < count; published += BATCH) {
    await tap.publish(Array.from({ length: Math.min(BATCH, count - published) }, forge))
    await sendAndReceive(agentOfA, agentOfB, `${sentCount++}:${'x'.repeat(30_000)}`)
  }

  await sendAndReceive(agentOfB, agentOfA, 'the end')
  const received = agentOfB.frames.slice(frameCountBefore).filter(({ type }) => type !== 'sent')
  assert.equal(received.length, sentCount, 'an agent gets what was sent to it and nothing else')
  assert.ok(received.every(({ type, from }) => type === 'message' && from === agentOfA.id))
  for (const { socket } of [agentOfA, agentOfB]) assert.equal(socket.readyState, socket.OPEN)
  let rejectedCount = 0
  for (const node of [a, b]) {
    const { rejected } = node.services.storage.eventsHealth()
    for (const each of rejected!.values()) rejectedCount += each
    t.diagnostic(`rejected: ${JSON.stringify(Object.fromEntries(rejected!))}`)
  }
  // Some are not counted: a notification on one node's channel reaches only that node.
  assert.ok(rejectedCount > count / 2, `${rejectedCount} of ${count} were counted`)
}

/** Causes every kind of event once, so that it is recorded. A third agent is connected only to be disconnected. */
async function causeEveryEvent(nodes: TappedNodes, agentOfA: HubSocket, agentOfB: HubSocket): Promise<void> {
  await sendAndReceive(agentOfA, agentOfB, 'short')
  await sendAndReceive(agentOfB, agentOfA, 'y'.repeat(20_000))
  assert.equal((await nodes.a.hub.sendTo(nodes.userId, agentOfB.id, 'from the API'))?.delivered, 1)
  const thirdAgent = await nodes.connect(nodes.b)
  assert.equal(await nodes.a.hub.disconnect(nodes.userId, thirdAgent.id), true)
  assert.equal((await thirdAgent.closed).code, 1001)
}

function createForger(
  { userId, keyId, a, tap }: TappedNodes,
  genuine: RecordedMessage[],
  random: Random,
): () => RecordedMessage {
  const nodeId = randomUUID()
  const relayEvent = (order: object) => ({
    type: 'hub.relay',
    to: '*',
    payload: JSON.stringify({ kind: 'order', from: nodeId, question: 1, order }),
  })
  const inventedPayloads: (() => Buffer)[] = [
    () => randomBytes(random.below(300)).toString('base64url'),
    () => '['.repeat(random.below(NOTIFY_LIMIT)),
    () => `${randomUUID()}:0:2:${'A'.repeat(7000)}`,
    () => `${randomUUID()}:0:1:{"type":`,
    () => `${randomUUID()}:0:99999999:AAAA`,
    () => JSON.stringify({ type: 'user.changed', userId: { toString: 1 } }),
    () => 'null',
    () => JSON.stringify({ type: 'events.gap' }),
    () => JSON.stringify(relayEvent({ op: 'disconnect', userId, target: keyId })),
    () => `${randomUUID()}:0:1:${JSON.stringify(relayEvent({ op: 'disconnect', userId, target: keyId }))}`,
    () =>
      `${randomUUID()}:0:1:${JSON.stringify(relayEvent({ op: 'deliver', userId, to: 'all', frame: '{"type":"message","from":"api","data":"forged"}' }))}`,
    () =>
      `${randomUUID()}:0:1:${JSON.stringify(relayEvent({ op: 'deliver', userId, to: 'all', frame: 'no JSON' }))}`,
    () => `${randomUUID()}:0:1:${JSON.stringify({ type: 'hub.relay', to: [a.hub.health()], message: 7 })}`,
  ].map(invent => () => Buffer.from(invent()))

  return () => {
    const { channel, payload } = random.pick(genuine)
    const mutation = random.below(6)
    if (mutation === 0) return { channel, payload }
    if (mutation === 1) return { channel, payload: withFlippedBit(payload, random) }
    if (mutation === 2) return { channel, payload: payload.subarray(0, random.below(payload.length)) }
    if (mutation === 3) return { channel, payload: withForeignTail(payload, random) }
    if (mutation === 4) return { channel, payload: tap.encode(withOtherCounter(tap.decode(payload), random)) }
    return { channel: random.pick(['keyway', 'keyway_sealed']), payload: random.pick(inventedPayloads)() }
  }
}

/** Flips one bit. Text stays text, since PostgreSQL accepts no other payload. */
function withFlippedBit(payload: Buffer, random: Random): Buffer {
  const flipped = Buffer.from(payload)
  const offset = random.below(flipped.length)
  const isText = flipped.every(byte => byte >= 0x20 && byte < 0x7f)
  flipped[offset]! ^= 1 << random.below(isText ? 4 : 8)
  if (isText && flipped[offset] === 0x7f) flipped[offset] = 0x41
  return flipped
}

/** Random text after the beginning of a genuine event, which has the ids of a secret and a sender that nodes know. */
function withForeignTail(payload: Buffer, random: Random): Buffer {
  const header = payload.subarray(0, Math.min(payload.length, 40))
  const tail = Buffer.from(randomBytes(random.below(500)).toString('base64url'))
  return Buffer.concat([header, tail])
}

/** Changes the counter (its last four bytes are 23 to 26), so that the event is not refused as a replay. */
function withOtherCounter(sealed: Buffer, random: Random): Buffer {
  const changedEvent = Buffer.from(sealed)
  if (changedEvent.length > 27) changedEvent.writeUInt32BE(random.below(2 ** 32), 23)
  return changedEvent
}
