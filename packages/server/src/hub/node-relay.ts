import type { Clock, Instant } from '../clock.ts'
import type {
  Absence,
  DeliverCommand,
  Events,
  MoveMessage,
  RelayCommand,
  RelayEvent,
  RelayMessage,
  RelayNotice,
} from '../events.ts'
import type { Log } from '../log.ts'
import { ArrivalDelays } from './arrival-delays.ts'
import { NO_RECEIVERS, type Outcome } from './numbered-sends.ts'
import type { Presence } from './presence.ts'
import { RELAY_VERSION } from './presence-store.ts'
import { createRelayQueue, type QueueOptions } from './relay-queue.ts'

export const RELAY_TIMEOUT_MS = 1000
/**
 * How long a starting node waits for the other nodes: live ones answer in milliseconds, one that just died never does.
 */
const ANNOUNCE_TIMEOUT_MS = 300
/** Maximum number of requests awaiting responses; beyond it only this node's connections are reached. */
const MAX_PENDING_REQUESTS = 10_000
/**
 * Maximum number of pending requests of one owner. Higher than the burst of one connection (FRAME_ALLOWANCE), and low
 * enough that a few owners cannot use up MAX_PENDING_REQUESTS.
 */
const MAX_PENDING_PER_OWNER = 500

interface PendingRequest {
  command: RelayCommand
  askedAt: Instant
  outcome: Outcome
  unanswered: Set<string>
  timer: NodeJS.Timeout
  resolve(outcome: Outcome): void
}

/** Exchanges requests and responses between the hubs of all nodes, by events. */
export interface Relay {
  /**
   * Sends a command to other nodes; resolves with the sum of the counts in the answers that arrive within the timeout.
   * Nodes that have left a request unanswered are not awaited. Commands arrive in the order of the calls. Without
   * nodes, or while too many requests are pending or queued, nothing is published and the counts are 0.
   */
  request(nodeIds: readonly string[], command: RelayCommand): Promise<Outcome>
  /** Everything that other nodes published before this instant has arrived. */
  readonly receivedUntil: Instant
  /** Resolves once all commands that other nodes published before now were executed here, after 2 s at the latest. */
  catchUp(): Promise<void>
  /** Announces this node to the others; resolves when they know it, after 300 ms at the latest. */
  announce(): Promise<void>
  /** Sends a notice to another node, after everything that was sent to it before. Its arrival is not confirmed. */
  notify(nodeId: string, notice: RelayNotice): void
  /** See `Presence.currentPeers`. */
  currentPeers(): readonly string[]
  /** The current peers that have left no request unanswered since they last sent something. */
  responsivePeers(): readonly string[]
  /** Publishes a message after all earlier ones; false if the queue, or the share of `options.owner` in it, is full. */
  publish(to: readonly string[], message: RelayMessage, options?: Pick<QueueOptions, 'owner'>): boolean
  /** Resolves once everything that was queued before is published, or has failed to be. */
  flush(): Promise<void>
  receive(event: RelayEvent): void
  stop(): void
}

export function createRelay(deps: {
  clock: Clock
  events: Events
  presence: Pick<Presence, 'peers' | 'currentPeers' | 'markAlive' | 'markLeft'>
  log: Log
  nodeId: string
  /**
   * Executes a command of another node; returns how many connections it reached. `origin` identifies the command. The
   * command `enter` reaches no connection and returns 1.
   */
  execute(command: RelayCommand, from: string, origin: string): Outcome | Promise<Outcome>
  receiveNotice(from: string, notice: RelayNotice): void
  /** Handles a message about a connection that moves. A node receives its own requests, too. */
  receiveMove(message: MoveMessage): void
  /**
   * What this node reports in its answer to a message: that it has no connection of the user, or none with the id or
   * key in `to`, and that it will notify the sender before it gets one. Empty if it has one, or cannot promise that.
   */
  absenceOf(from: string, command: DeliverCommand): Absence
  /** Handles the absence in another node's answer to a message; it is empty if that node reported none. */
  receiveAbsence(from: string, command: DeliverCommand, absence: Absence): void
  timeoutMs?: number
}): Relay {
  const { clock, presence, nodeId, execute, timeoutMs = RELAY_TIMEOUT_MS } = deps
  const queue = createRelayQueue(deps)
  /** The pending requests by their id, which is `RelayMessage.question`. */
  const pending = new Map<number, PendingRequest>()
  /** By user id. */
  const pendingCounts = new Map<string, number>()
  /**
   * Ids of peers that left a request unanswered and have sent nothing since: presumed dead, so that no request awaits
   * them.
   */
  const unresponsivePeers = new Set<string>()
  const delays = new ArrivalDelays()
  let lastRequestId = 0
  let receivedUntil = Number.NEGATIVE_INFINITY
  let currentCatchUp = Promise.resolve()
  /**
   * The `catchUp` that follows the current one. All callers meanwhile share it, so that 10,000 agents that leave a
   * draining node cost a few requests.
   */
  let nextCatchUp: Promise<void> | undefined

  return {
    request,
    get receivedUntil() {
      return receivedUntil
    },
    catchUp() {
      nextCatchUp ??= currentCatchUp.then(() => {
        nextCatchUp = undefined
        currentCatchUp = ping(timeoutMs)
        return currentCatchUp
      })
      return nextCatchUp
    },
    announce: () => ping(ANNOUNCE_TIMEOUT_MS),
    currentPeers: () => presence.currentPeers(),
    responsivePeers: () => presence.currentPeers().filter(id => !unresponsivePeers.has(id)),
    publish,
    flush: queue.flush,
    notify(to, notice) {
      publish([to], { kind: 'notice', from: nodeId, notice })
    },
    receive({ to, message }) {
      // Node ids are new at every start, so a message that was published before this start does not name this node.
      if (!to.includes(nodeId)) return
      if (message.kind === 'release' && message.from === nodeId) return deps.receiveMove(message)
      if (message.from === nodeId) return
      presence.markAlive(message.from, relayVersionOf(message))
      unresponsivePeers.delete(message.from)
      if (message.kind === 'left') receiveLeft(message.from)
      if (message.kind === 'answer') return receiveResponse(message)
      if (message.kind === 'notice') return deps.receiveNotice(message.from, message.notice)
      if (message.kind !== 'order') return deps.receiveMove(message)
      const { from, question: requestId, sentAt, order } = message
      const isLate = sentAt !== undefined && delays.delayOf(from, sentAt, performance.now()) > timeoutMs
      const absence = order.op === 'deliver' ? deps.absenceOf(from, order) : {}
      const sendAnswer = ({ delivered: count, held }: Outcome) =>
        void publish([from], { kind: 'answer', from: nodeId, question: requestId, count, held, ...absence })
      // If the network between the other node and the database stalls, a message may arrive long after its sender was
      // told that it reached no connection here.
      const isExpired = isLate && order.op === 'deliver'
      const outcome = isExpired ? NO_RECEIVERS : execute(order, from, originOf(from, order, requestId))
      if ('then' in outcome) void outcome.then(sendAnswer)
      else sendAnswer(outcome)
    },
    stop() {
      for (const id of [...pending.keys()]) resolveRequest(id)
    },
  }

  async function ping(waitMs: number): Promise<void> {
    await request(presence.peers(), { op: 'ping', relayVersion: RELAY_VERSION }, waitMs)
  }

  function request(to: readonly string[], command: RelayCommand, waitMs = timeoutMs): Promise<Outcome> {
    const owner = ownerOf(command)
    if (to.length === 0 || pending.size >= MAX_PENDING_REQUESTS) return Promise.resolve(NO_RECEIVERS)
    if (owner && (pendingCounts.get(owner) ?? 0) >= MAX_PENDING_PER_OWNER)
      return Promise.resolve(NO_RECEIVERS)
    const id = ++lastRequestId
    const unanswered = new Set(to.filter(peer => !unresponsivePeers.has(peer)))
    const isAwaited = unanswered.size > 0
    const askedAt = clock.now()
    // After a timeout, or at once if no answer is awaited, the caller gets 0 as the count. A queued command must not be
    // published long after that: the agent whose message it delivers may have moved to another node, and its later
    // messages may have arrived.
    const isCurrent = () => (isAwaited ? pending.has(id) : clock.now() - askedAt < waitMs)
    const sentAt = Math.round(performance.now())
    const message: RelayMessage = { kind: 'order', from: nodeId, question: id, sentAt, order: command }
    if (!publish(to, message, { isCurrent }) || !isAwaited) return Promise.resolve(NO_RECEIVERS)
    return new Promise(resolve => {
      const timer = setTimeout(() => timeOut(id), waitMs)
      timer.unref()
      pending.set(id, {
        command,
        askedAt,
        outcome: { ...NO_RECEIVERS },
        unanswered,
        timer,
        resolve,
      })
      if (owner) pendingCounts.set(owner, (pendingCounts.get(owner) ?? 0) + 1)
    })
  }

  function receiveResponse(answer: Extract<RelayMessage, { kind: 'answer' }>): void {
    const { from, question: requestId, count, held = 0 } = answer
    const request = pending.get(requestId)
    if (!request?.unanswered.delete(from)) return
    // All nodes receive events in the same order, so whatever was published before the request has arrived before its
    // answer.
    receivedUntil = Math.max(receivedUntil, request.askedAt)
    if (request.command.op === 'deliver') deps.receiveAbsence(from, request.command, answer)
    request.outcome.delivered += count
    request.outcome.held += held
    if (request.unanswered.size === 0) resolveRequest(requestId)
  }

  /**
   * Called when a node has left: all its answers have arrived by then, and requests that it has not answered reached no
   * connection there.
   */
  function receiveLeft(node: string): void {
    presence.markLeft(node)
    for (const [id, { unanswered }] of pending)
      if (unanswered.delete(node) && unanswered.size === 0) resolveRequest(id)
  }

  function timeOut(id: number): void {
    const peers = presence.peers()
    for (const peer of unresponsivePeers) if (!peers.includes(peer)) unresponsivePeers.delete(peer)
    delays.retain(peers)
    for (const peer of pending.get(id)?.unanswered ?? [])
      if (peers.includes(peer)) unresponsivePeers.add(peer)
    resolveRequest(id)
  }

  function resolveRequest(id: number): void {
    const request = pending.get(id)
    if (!request) return
    pending.delete(id)
    clearTimeout(request.timer)
    const owner = ownerOf(request.command)
    if (owner) {
      const count = pendingCounts.get(owner)! - 1
      if (count === 0) pendingCounts.delete(owner)
      else pendingCounts.set(owner, count)
    }
    request.resolve(request.outcome)
  }

  function publish(to: readonly string[], message: RelayMessage, options: QueueOptions = {}): boolean {
    // An event that this node must receive itself, to learn its position in the order of events, goes to the shared
    // channel of all nodes.
    const currentPeers = to.includes(nodeId) ? [] : presence.currentPeers()
    const nodesWithOwnChannel = to.filter(id => currentPeers.includes(id))
    const nodesOnSharedChannel = to.filter(id => !currentPeers.includes(id))
    const toEvent = (nodes: readonly string[]) => ({ type: 'hub.relay' as const, to: nodes, message })
    return (
      (nodesWithOwnChannel.length === 0 ||
        queue.add(toEvent(nodesWithOwnChannel), { ...options, onOwnChannels: true })) &&
      (nodesOnSharedChannel.length === 0 || queue.add(toEvent(nodesOnSharedChannel), options))
    )
  }
}

function ownerOf(command: RelayCommand): string | null {
  return 'userId' in command ? command.userId : null
}

/**
 * The relay version of the node that sent the message, whose row may not have been read yet; undefined if the message
 * does not show it.
 */
function relayVersionOf(message: RelayMessage): number | undefined {
  if (message.kind === 'order') return message.order.op === 'ping' ? message.order.relayVersion : undefined
  return message.kind === 'answer' ? undefined : RELAY_VERSION
}

function originOf(from: string, order: RelayCommand, requestId: number): string {
  const number = order.op === 'deliver' ? order.number : undefined
  return number === undefined ? `${from}?${requestId}` : messageOrigin(from, number)
}

export function messageOrigin(nodeId: string, number: number): string {
  return `${nodeId}:${number}`
}
