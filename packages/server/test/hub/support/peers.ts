import type { TestContext } from 'node:test'
import type { Event, RelayCommand, RelayMessage } from '../../../src/events.ts'
import { encodeMessage } from '../../../src/hub/frame.ts'
import type { HubDeps } from '../../../src/hub/hub.ts'
import { RELAY_VERSION } from '../../../src/hub/presence-store.ts'
import { newResumeToken } from '../../../src/hub/resume-token.ts'
import { newId } from '../../../src/ids.ts'
import { inTime } from '../../support/patience.ts'
import { openServices, type Services } from '../../support/services.ts'
import { makeKey, openHub } from '../fixture.ts'

type WithoutSender<Message> = Message extends RelayMessage ? Omit<Message, 'from'> : never
type Command = RelayCommand['op']
type Order<Op extends Command> = Extract<RelayMessage, { kind: 'order' }> & {
  order: Extract<RelayCommand, { op: Op }>
}

/** How far in the future the heartbeats of peers are recorded, so that peers count as alive for the whole test. */
const HEARTBEAT_LEAD_MS = 86_400_000

/** Another node, played by the test: it sees what the hub sends to it, and sends what the test says. */
export interface Peer {
  id: string
  /** What the hub has sent and the test has not taken with `next` or `nextOrder`. */
  received: RelayMessage[]
  /** Whether it confirms notices about connections (`enter`). */
  confirms: boolean
  /** Records the peer as alive, and announces it to the hub. */
  start(): Promise<void>
  send(message: WithoutSender<RelayMessage>): void
  /** Sends a command, to which the hub will answer. */
  order(command: RelayCommand): void
  /** Removes and returns the first message of this kind, received already or later. */
  next<Kind extends RelayMessage['kind']>(kind: Kind): Promise<Extract<RelayMessage, { kind: Kind }>>
  nextOrder<Op extends Command>(op: Op): Promise<Order<Op>>
}

/**
 * Opens a hub whose other nodes are played by the test, so that the test decides what arrives when. Events arrive at
 * once and in the same order at all nodes; the hub receives its own events too. Before an event arrives,
 * `beforeDelivery` is awaited.
 */
export async function openAmongPeers(
  t: TestContext,
  overrides: Partial<HubDeps> | ((services: Services) => Partial<HubDeps>) = {},
) {
  const services = await openServices('sqlite', t)
  const nodeId = newId(services.clock.now())
  const peers = new Map<string, Peer & { receive(message: RelayMessage): void }>()
  const transport = { beforeDelivery: async (_message: RelayMessage): Promise<void> => {} }
  let listener = (_event: Event) => {}
  const events: HubDeps['events'] = {
    subscribe(each) {
      listener = each
      return () => {
        listener = () => {}
      }
    },
    async publish(event) {
      if (event.type !== 'hub.relay') return
      await transport.beforeDelivery(event.message)
      for (const id of event.to) {
        if (id === nodeId) listener(event)
        else peers.get(id)?.receive(JSON.parse(JSON.stringify(event.message)))
      }
    },
  }
  const resolvedOverrides = typeof overrides === 'function' ? overrides(services) : overrides
  const node = await openHub(services, t, { nodeId, events, ...resolvedOverrides })
  const { user } = await services.signIn('ada@example.com')

  async function addPeer({
    hasUser = false,
    isSilent = false,
    version = RELAY_VERSION,
  }: PeerOptions = {}): Promise<Peer> {
    const now = services.clock.now()
    const peer = createPeer(newId(now), message => {
      listener({ type: 'hub.relay', to: [nodeId], message })
    })
    peers.set(peer.id, peer)
    const { presence, locations } = services.store
    if (hasUser) await locations.enter(peer.id, [user.id])
    peer.start = async () => {
      const abilities = { sealsEvents: true, relayVersion: version }
      const seenAt = now + HEARTBEAT_LEAD_MS
      await presence.heartbeat({ id: peer.id, startedAt: now, seenAt, version: 'test', ...abilities })
      peer.confirms = !isSilent
      if (version > 0) peer.order({ op: 'ping', relayVersion: version })
    }
    if (!isSilent) await peer.start()
    return peer
  }

  return {
    ...node,
    services,
    userId: user.id,
    key: await makeKey(services, user.id),
    addPeer,
    transport,
  }
}

interface PeerOptions {
  /** Whether the peer is recorded as having connections of the test's user. */
  hasUser?: boolean
  /** Whether the peer is not alive before `start`, and never confirms a notice (`enter`) by itself. */
  isSilent?: boolean
  /** The relay version; 0 for a node of the previous minor version, which sends no notices (`enter`). */
  version?: number
}

function createPeer(
  id: string,
  sendToHub: (message: RelayMessage) => void,
): Peer & { receive(message: RelayMessage): void } {
  let lastQuestion = 0
  let wake = () => {}
  const received: RelayMessage[] = []
  async function take<Found extends RelayMessage>(
    what: string,
    matches: (message: RelayMessage) => boolean,
  ): Promise<Found> {
    for (;;) {
      const index = received.findIndex(matches)
      if (index >= 0) return received.splice(index, 1)[0] as Found
      await inTime(
        what,
        new Promise<void>(resolve => {
          wake = resolve
        }),
      )
    }
  }
  return {
    id,
    received,
    confirms: false,
    start: async () => {},
    receive(message) {
      if (this.confirms && message.kind === 'order' && message.order.op === 'enter')
        queueMicrotask(() => this.send({ kind: 'answer', question: message.question, count: 1 }))
      received.push(message)
      wake()
    },
    send: message => sendToHub({ ...message, from: id } as RelayMessage),
    order: command => sendToHub({ kind: 'order', from: id, question: ++lastQuestion, order: command }),
    next: kind => take(kind, message => message.kind === kind),
    nextOrder: op => take(op, message => message.kind === 'order' && message.order.op === op),
  }
}

interface Release {
  /** The messages that the peer kept, each with its `KeptMessage.origin`. */
  messages?: [origin: string, frame: string][]
  /** The number of the last message before the agent's socket broke; by default that of the last kept message. */
  heldSeq?: number
  /** See `MessageLog.leftNodes`. */
  passed?: [nodeId: string, number: number][]
}

/** A connection that an agent had on a peer, with what the agent and the peer need to move it to the hub. */
export function connectionOn(peer: Peer, userId: string, keyId: string) {
  const connectionId = newId(1)
  const { token, secretHash } = newResumeToken(peer.id, connectionId)
  return {
    identity: { connectionId, userId, keyId },
    /** The header with which the agent asks to resume the connection. */
    headers: (lastSeq: number) => ({ 'keyway-resume': `${token}.${lastSeq}` }),
    /** Answers the hub's request to hand over the connection. */
    release(question: number, { messages = [], heldSeq = messages.length, passed = [] }: Release = {}): void {
      const state = { seq: messages.length, heldSeq, heldMs: 0, secretHash, address: '::1', client: null }
      const text = JSON.stringify({ ...state, sends: null, passed, messages })
      peer.send({ kind: 'released', question, part: 0, parts: 1, text })
    },
  }
}

/** The frame of a message with this data, as nodes relay it. */
export function messageFrame(data: string): string {
  return encodeMessage({ id: data, from: 'api', from_key_id: null, data })!
}

export function parseState({ text }: Extract<RelayMessage, { kind: 'released' }>) {
  return JSON.parse(text)
}
