import {
  type ConnectionIdentity,
  MAX_ADOPTED,
  MAX_MOVE_PART_LENGTH,
  MAX_MOVE_PARTS,
  type MoveMessage,
  type ReleaseRequest,
} from '../events.ts'
import type { Relay } from './node-relay.ts'

/** Maximum number of pending requests for connections, in total and for one owner. */
const MAX_PENDING = 10_000
const MAX_PENDING_PER_OWNER = 1000
/**
 * Maximum rounds of requests for a connection: to the node that issued its resume token, then to all others, then to
 * nodes that started meanwhile.
 */
const MAX_ROUNDS = 3

export type MoveRequest = Pick<ReleaseRequest, keyof ConnectionIdentity | 'secretHash' | 'lastSeq'>

export interface ConnectionMovesDeps {
  relay: Pick<Relay, 'publish' | 'currentPeers' | 'responsivePeers'>
  nodeId: string
  /** Milliseconds to wait for the state of a connection. */
  timeoutMs: number
  /**
   * Hands over a connection, and resolves with its state, or with an empty object if a message that the agent missed is
   * no longer kept. Returns or resolves with null if the connection is not on this node or may not be handed over. One
   * that is still moving to this node is handed over once it has arrived, if `isAwaited` then returns true: the
   * requester may have stopped waiting.
   */
  release(request: MoveRequest, isAwaited: () => boolean): Promise<object | null> | null
  /** Called when another node that shuts down asks this one to request these connections. */
  adopt(from: string, connections: readonly ConnectionIdentity[]): void
}

/** Moves connections between nodes: requests those of other nodes, and hands over those that others request. */
export interface ConnectionMoves {
  /**
   * Requests a connection from the node that issued its resume token, then, if that does not have it, from all others.
   * Resolves with the state that `release` returned on the node that had it; null if no node sent it in time.
   * @param onOrdered called when this node receives its own request. All nodes receive events in the same order, so the
   * node that has the connection delivers only what precedes the request, and this node must keep what follows it
   */
  request(issuer: string, moveRequest: MoveRequest, onOrdered: () => void): Promise<unknown>
  /** Asks another node to request connections of this node. */
  offer(to: string, connections: readonly ConnectionIdentity[]): void
  /** The other nodes that can take over connections of this one. */
  targetNodes(): readonly string[]
  /** `leaving`: this node takes over no more connections. `left`: it has handed over all of its own. */
  announce(kind: 'leaving' | 'left'): void
  receive(message: MoveMessage): void
  /** Resolves once the states of all connections that were handed over are queued for sending. */
  released(): Promise<unknown>
  stop(): void
}

interface PendingMove {
  userId: string
  /** Ids of the nodes that have not answered. */
  unanswered: Set<string>
  /** The parts that have arrived of the answer of the node that has the connection; null before the first part. */
  parts: { from: string; texts: string[] } | null
  onOrdered(): void
  timer: NodeJS.Timeout
  resolve(state: unknown): void
}

export function createConnectionMoves(deps: ConnectionMovesDeps): ConnectionMoves {
  const { relay, nodeId, timeoutMs, release, adopt } = deps
  /** The pending requests by their id, which is `MoveMessage.question`. */
  const pending = new Map<number, PendingMove>()
  /** By user id. */
  const pendingCounts = new Map<string, number>()
  /** Ids of the nodes that are shutting down. */
  const leavingNodes = new Set<string>()
  /** One promise for each request of another node that this node is answering; settles once the answer is queued. */
  const releases = new Set<Promise<void>>()
  /** Keys (`requestKey`) of other nodes' requests that this node has not answered yet and that were not withdrawn. */
  const awaitedRequests = new Set<string>()
  let lastRequestId = 0

  return {
    async request(issuer, moveRequest, onOrdered) {
      const askedNodes = new Set<string>()
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const peers = relay.currentPeers().filter(peer => !askedNodes.has(peer))
        const nodes = round === 0 && peers.includes(issuer) ? [issuer] : peers
        for (const node of nodes) askedNodes.add(node)
        const state = await requestFrom(nodes, moveRequest, onOrdered)
        if (state !== undefined) return state
      }
      return null
    },
    offer(to, connections) {
      for (let start = 0; start < connections.length; start += MAX_ADOPTED) {
        const batch = connections.slice(start, start + MAX_ADOPTED)
        relay.publish([to], { kind: 'adopt', from: nodeId, connections: batch })
      }
    },
    targetNodes: () => relay.responsivePeers().filter(peer => !leavingNodes.has(peer)),
    announce(kind) {
      const peers = relay.currentPeers()
      if (peers.length > 0) relay.publish(peers, { kind, from: nodeId })
    },
    receive(message) {
      if (message.kind === 'release' && message.from === nodeId) pending.get(message.question)?.onOrdered()
      else if (message.from === nodeId) return
      else if (message.kind === 'release') trackRelease(answerRelease(message))
      else if (message.kind === 'released') receiveReleased(message)
      else if (message.kind === 'withdrawn')
        awaitedRequests.delete(requestKey(message.from, message.question))
      else if (message.kind === 'adopt') adopt(message.from, message.connections)
      else if (message.kind === 'leaving') receiveLeaving(message.from)
      else receiveLeft(message.from)
    },
    released: () => Promise.all(releases),
    stop() {
      for (const requestId of [...pending.keys()]) resolveRequest(requestId, undefined)
    },
  }

  /**
   * Asks these nodes for the connection; undefined if none of them sends it in time, or if too many requests are
   * pending or queued.
   */
  function requestFrom(
    nodes: readonly string[],
    moveRequest: MoveRequest,
    onOrdered: () => void,
  ): Promise<unknown> {
    const { userId } = moveRequest
    const isFull = pending.size >= MAX_PENDING || (pendingCounts.get(userId) ?? 0) >= MAX_PENDING_PER_OWNER
    if (nodes.length === 0 || isFull) return Promise.resolve(undefined)
    const requestId = ++lastRequestId
    const request: ReleaseRequest = { kind: 'release', from: nodeId, question: requestId, ...moveRequest }
    // This node receives its own request too, and so learns the position of the request in the order of events.
    if (!relay.publish([nodeId, ...nodes], request)) return Promise.resolve(undefined)
    return new Promise(resolve => {
      const timer = setTimeout(() => resolveRequest(requestId, undefined), timeoutMs)
      timer.unref()
      pending.set(requestId, { userId, unanswered: new Set(nodes), parts: null, onOrdered, timer, resolve })
      pendingCounts.set(userId, (pendingCounts.get(userId) ?? 0) + 1)
    })
  }

  function trackRelease(release: Promise<void>): void {
    releases.add(release)
    void release.finally(() => releases.delete(release))
  }

  async function answerRelease({ from, question: requestId, ...moveRequest }: ReleaseRequest): Promise<void> {
    const key = requestKey(from, requestId)
    awaitedRequests.add(key)
    // `release` hands over the connection before its first await, and thus at the position of the request in the order
    // of events.
    const state = await release(
      moveRequest,
      () => awaitedRequests.has(key) && relay.currentPeers().includes(from),
    )
    awaitedRequests.delete(key)
    const text = state ? JSON.stringify(state) : ''
    const parts = Math.ceil(text.length / MAX_MOVE_PART_LENGTH)
    for (let part = 0; part < Math.max(1, parts); part++) {
      const chunk = text.slice(part * MAX_MOVE_PART_LENGTH, (part + 1) * MAX_MOVE_PART_LENGTH)
      const answer = {
        kind: 'released',
        from: nodeId,
        question: requestId,
        part,
        parts,
        text: chunk,
      } as const
      if (!relay.publish([from], answer, { owner: state ? moveRequest.userId : null })) return
    }
  }

  function receiveReleased({
    from,
    question: requestId,
    part,
    parts,
    text,
  }: Extract<MoveMessage, { kind: 'released' }>) {
    const request = pending.get(requestId)
    if (!request?.unanswered.has(from)) return
    if (parts === 0) {
      request.unanswered.delete(from)
      if (request.unanswered.size === 0) resolveRequest(requestId, undefined)
      return
    }
    if (part === 0) request.parts = { from, texts: [] }
    const { parts: received } = request
    if (received?.from !== from || received.texts.length !== part || part >= MAX_MOVE_PARTS) return
    received.texts.push(text)
    if (received.texts.length < parts) return
    request.unanswered.delete(from)
    resolveRequest(requestId, parse(received.texts.join('')))
  }

  function resolveRequest(requestId: number, state: unknown): void {
    const request = pending.get(requestId)
    if (!request) return
    pending.delete(requestId)
    clearTimeout(request.timer)
    // A node that has not answered may be waiting until the connection has moved there from a third node. It must then
    // keep the connection instead of handing it over, since this node accepts no more answers.
    const { unanswered } = request
    if (unanswered.size > 0)
      relay.publish([...unanswered], { kind: 'withdrawn', from: nodeId, question: requestId })
    const count = pendingCounts.get(request.userId)! - 1
    if (count === 0) pendingCounts.delete(request.userId)
    else pendingCounts.set(request.userId, count)
    request.resolve(state)
  }

  function receiveLeaving(node: string): void {
    const peers = relay.currentPeers()
    for (const each of leavingNodes) if (!peers.includes(each)) leavingNodes.delete(each)
    leavingNodes.add(node)
  }

  /** Called once a node has left: all its answers have arrived by then, so requests stop waiting for it. */
  function receiveLeft(node: string): void {
    for (const [requestId, { unanswered }] of pending)
      if (unanswered.delete(node) && unanswered.size === 0) resolveRequest(requestId, undefined)
  }
}

function requestKey(from: string, requestId: number): string {
  return `${from}:${requestId}`
}

/** Null if the text is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
