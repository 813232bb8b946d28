import {
  type ConnectionIdentity,
  MAX_ADOPTED,
  MAX_MOVE_PART_LENGTH,
  MAX_MOVE_PARTS,
  type MoveMessage,
  type ReleaseMessage,
} from '../events.ts'
import type { Relay } from './node-relay.ts'

/** Maximum number of pending requests for connections, in total and for one owner. */
const MAX_PENDING = 10_000
const MAX_PENDING_PER_OWNER = 1000
/**
 * Order in which nodes are asked: the node that issued the token, then all others, then nodes that started meanwhile.
 */
const ROUNDS = 3

export type MoveRequest = Pick<ReleaseMessage, keyof ConnectionIdentity | 'secretHash' | 'lastSeq'>

export interface ConnectionMovesDeps {
  relay: Pick<Relay, 'publish' | 'peers' | 'responsivePeers'>
  nodeId: string
  /** Milliseconds to wait for the state of a connection. */
  timeoutMs: number
  /**
   * Hands over a connection, and resolves with its state; null if it is not on this node. If it had to wait for the
   * connection, it first checks `isAwaited`.
   */
  release(request: MoveRequest, isAwaited: () => boolean): Promise<object | null> | null
  /** Called when another node that shuts down asks this one to request these connections. */
  adopt(from: string, connections: readonly ConnectionIdentity[]): void
}

/** Moves connections between nodes: requests those of other nodes, and hands over those that others request. */
export interface ConnectionMoves {
  /**
   * Requests a connection from the node that issued its token, then, if it is not there, from all others. Resolves with
   * its state, which `release` returned there, or null.
   * @param onOrdered called once the request has its position in the order of all events: messages that come after it
   * the other node no longer delivers to the connection
   */
  request(issuer: string, wanted: MoveRequest, onOrdered: () => void): Promise<unknown>
  /** Asks another node to request connections of this node. */
  offer(to: string, connections: readonly ConnectionIdentity[]): void
  /** Other nodes that can take over connections. */
  takers(): readonly string[]
  /** Announces that this node takes over no connections, or has handed over all of its own. */
  announce(kind: 'leaving' | 'left'): void
  receive(message: MoveMessage): void
  /** Resolves once the states of all connections that were handed over are sent. */
  released(): Promise<unknown>
  stop(): void
}

interface Pending {
  userId: string
  unanswered: Set<string>
  parts: { from: string; texts: string[] } | null
  onOrdered(): void
  timer: NodeJS.Timeout
  resolve(state: unknown): void
}

export function createConnectionMoves(deps: ConnectionMovesDeps): ConnectionMoves {
  const { relay, nodeId, timeoutMs, release, adopt } = deps
  const pending = new Map<number, Pending>()
  const pendingOf = new Map<string, number>()
  /** Nodes that are shutting down. */
  const leaving = new Set<string>()
  const releasing = new Set<Promise<void>>()
  /** Pending requests of other nodes. */
  const awaited = new Set<string>()
  let lastQuestion = 0

  return {
    async request(issuer, wanted, onOrdered) {
      const asked = new Set<string>()
      for (let round = 0; round < ROUNDS; round++) {
        const peers = relay.peers().filter(peer => !asked.has(peer))
        const nodes = round === 0 && peers.includes(issuer) ? [issuer] : peers
        for (const node of nodes) asked.add(node)
        const state = await ask(nodes, wanted, onOrdered)
        if (state !== undefined) return state
      }
      return null
    },
    offer(to, connections) {
      for (let start = 0; start < connections.length; start += MAX_ADOPTED) {
        const some = connections.slice(start, start + MAX_ADOPTED)
        relay.publish([to], { kind: 'adopt', from: nodeId, connections: some })
      }
    },
    takers: () => relay.responsivePeers().filter(peer => !leaving.has(peer)),
    announce(kind) {
      const peers = relay.peers()
      if (peers.length > 0) relay.publish(peers, { kind, from: nodeId })
    },
    receive(message) {
      if (message.kind === 'release' && message.from === nodeId) pending.get(message.question)?.onOrdered()
      else if (message.from === nodeId) return
      else if (message.kind === 'release') follow(answer(message))
      else if (message.kind === 'released') receiveReleased(message)
      else if (message.kind === 'withdrawn') awaited.delete(nameOf(message))
      else if (message.kind === 'adopt') adopt(message.from, message.connections)
      else if (message.kind === 'leaving') remember(message.from)
      else forget(message.from)
    },
    released: () => Promise.all(releasing),
    stop() {
      for (const question of [...pending.keys()]) settle(question, undefined)
    },
  }

  /** Undefined if none of these nodes has it. */
  function ask(nodes: readonly string[], wanted: MoveRequest, onOrdered: () => void): Promise<unknown> {
    const { userId } = wanted
    const isFull = pending.size >= MAX_PENDING || (pendingOf.get(userId) ?? 0) >= MAX_PENDING_PER_OWNER
    if (nodes.length === 0 || isFull) return Promise.resolve(undefined)
    const question = ++lastQuestion
    const request: ReleaseMessage = { kind: 'release', from: nodeId, question, ...wanted }
    // This node receives its own request too, and so learns its position in the order of events.
    if (!relay.publish([nodeId, ...nodes], request)) return Promise.resolve(undefined)
    return new Promise(resolve => {
      const timer = setTimeout(() => settle(question, undefined), timeoutMs)
      timer.unref()
      pending.set(question, { userId, unanswered: new Set(nodes), parts: null, onOrdered, timer, resolve })
      pendingOf.set(userId, (pendingOf.get(userId) ?? 0) + 1)
    })
  }

  function follow(answering: Promise<void>): void {
    releasing.add(answering)
    void answering.finally(() => releasing.delete(answering))
  }

  async function answer({ from, question, ...wanted }: ReleaseMessage): Promise<void> {
    const name = nameOf({ from, question })
    awaited.add(name)
    // `release` hands over the connection before its first await: this is the position in the order of events.
    const state = await release(wanted, () => awaited.has(name) && relay.peers().includes(from))
    awaited.delete(name)
    const text = state ? JSON.stringify(state) : ''
    const parts = Math.ceil(text.length / MAX_MOVE_PART_LENGTH)
    for (let part = 0; part < Math.max(1, parts); part++) {
      const some = text.slice(part * MAX_MOVE_PART_LENGTH, (part + 1) * MAX_MOVE_PART_LENGTH)
      const released = { kind: 'released', from: nodeId, question, part, parts, text: some } as const
      if (!relay.publish([from], released, { owner: state ? wanted.userId : null })) return
    }
  }

  function receiveReleased({
    from,
    question,
    part,
    parts,
    text,
  }: Extract<MoveMessage, { kind: 'released' }>) {
    const request = pending.get(question)
    if (!request?.unanswered.has(from)) return
    if (parts === 0) {
      request.unanswered.delete(from)
      if (request.unanswered.size === 0) settle(question, undefined)
      return
    }
    if (part === 0) request.parts = { from, texts: [] }
    const { parts: received } = request
    if (received?.from !== from || received.texts.length !== part || part >= MAX_MOVE_PARTS) return
    received.texts.push(text)
    if (received.texts.length < parts) return
    request.unanswered.delete(from)
    settle(question, parse(received.texts.join('')))
  }

  function settle(question: number, state: unknown): void {
    const request = pending.get(question)
    if (!request) return
    pending.delete(question)
    clearTimeout(request.timer)
    // A node may still wait for the connection to arrive; it must then keep the connection, since the requester has
    // given up.
    const { unanswered } = request
    if (unanswered.size > 0) relay.publish([...unanswered], { kind: 'withdrawn', from: nodeId, question })
    const count = pendingOf.get(request.userId)! - 1
    if (count === 0) pendingOf.delete(request.userId)
    else pendingOf.set(request.userId, count)
    request.resolve(state)
  }

  function remember(node: string): void {
    const peers = relay.peers()
    for (const each of leaving) if (!peers.includes(each)) leaving.delete(each)
    leaving.add(node)
  }

  /** Called once a node has left: everything that it handed over has arrived by then. */
  function forget(node: string): void {
    for (const [question, { unanswered }] of pending)
      if (unanswered.delete(node) && unanswered.size === 0) settle(question, undefined)
  }
}

function nameOf({ from, question }: Pick<ReleaseMessage, 'from' | 'question'>): string {
  return `${from}:${question}`
}

/** Null if the text is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
