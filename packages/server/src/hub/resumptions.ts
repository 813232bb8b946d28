import timers from 'node:timers/promises'
import { type Clock, SECOND } from '../clock.ts'
import type { ConnectionIdentity, MoveMessage } from '../events.ts'
import { equals } from '../secrets.ts'
import { AgentConnection, type ConnectionHost, type HandoverState } from './agent-connection.ts'
import { GOING_AWAY, RESTARTING } from './close-codes.ts'
import { createConnectionMoves, type MoveRequest } from './connection-moves.ts'
import type { Locations } from './locations.ts'
import { KeptMessage, type MessageBudget, MessageLog } from './message-log.ts'
import { mergeInOrder, originsOf } from './message-order.ts'
import type { Messages } from './messages.ts'
import { type MovedState, parseMovedState, toMovedMessages } from './moved-state.ts'
import { RELAY_TIMEOUT_MS, type Relay } from './node-relay.ts'
import { NumberedSends } from './numbered-sends.ts'
import type { OwnerLimits } from './rate-limits.ts'
import type { Registry } from './registry.ts'
import type { ResumeRequest } from './resume-token.ts'

/**
 * Maximum number of connections that are offered to another node at once, and how long that node has to take over all
 * of them.
 */
const MAX_OFFERED = 100
const TAKE_OVER_MS = SECOND / 2
/** Maximum number of connections that nodes shutting down move here at once: each brings up to a MiB of messages. */
export const MAX_ADOPTING = 2 * MAX_OFFERED
const POLL_MS = 10
/**
 * A move that an agent requested is charged to its owner's limit of delivered bytes at this multiple of its size: a
 * single handshake puts up to a MiB into the queue to other nodes, and all connections share that queue. A move before a
 * shutdown is charged at its size.
 */
const REQUESTED_MOVE_COST = 4
/**
 * A connection remembers at most this many of the nodes that it was on last. Messages of the nodes before those were
 * published too long ago to arrive now.
 */
const MAX_LEFT_NODES = 8

export interface ResumptionsDeps {
  clock: Clock
  registry: Registry
  budget: MessageBudget
  relay: Pick<Relay, 'publish' | 'currentPeers' | 'responsivePeers' | 'flush'>
  locations: Pick<Locations, 'enter'>
  nodeId: string
  relayTimeoutMs?: number
  /** Maximum number of one user's unbroken connections on this node, and also that of the user's broken ones. */
  maxConnectionsPerUser: number
  isDraining(): boolean
  /** Loads the status of a key again, and closes its connections if it may no longer be used. */
  recheck(keyId: string): void
  host: ConnectionHost
  messages: Pick<Messages, 'lastNumber'>
  ownerLimits: Pick<OwnerLimits, 'chargeDeliveries'>
}

/** Holds broken connections, finds them again on this node or another, and hands them over before a shutdown. */
export interface Resumptions {
  /** Registers a connection as broken; if the owner has too many, the one that was registered first is ended. */
  hold(connection: AgentConnection): void
  /**
   * Moves the connection that an agent asks to resume to this node, if another node has it. If this node drains, closes
   * `connection`, the agent's new one, instead.
   */
  moveHere(connection: AgentConnection, request: ResumeRequest): Promise<void>
  /**
   * Ends the connection that an agent asks to resume, closes its old socket, and returns its state for the agent's new
   * connection. Null if it is not on this node or not the agent's; also if a message after the last one that the agent
   * received is no longer kept, in which case the old connection has ended, too. No message reaches the connection
   * until it is registered with its new socket, so the caller must not await anything before that.
   */
  claim(connection: AgentConnection, request: ResumeRequest): HandoverState | null
  /**
   * Lets other nodes take over the broken connections; resolves when they have, after `timeoutMs`, or at once if no
   * other node can.
   */
  handOver(timeoutMs: number): Promise<void>
  /**
   * Handles a message about a move of a connection: one from another node, or this node's own request. A node receives
   * its own requests too, which shows their position in the order of events.
   */
  receive(message: MoveMessage): void
  /** Ends all broken connections. Called after events were lost, which may have been messages to them. */
  endHeld(): void
  /**
   * Announces that this node has no more connections, once the states of those that it handed over are queued for
   * sending; resolves once the announcement is published, or after `timeoutMs`.
   */
  leave(timeoutMs: number): Promise<void>
  stop(): void
}

export function createResumptions(deps: ResumptionsDeps): Resumptions {
  const { clock, registry, budget, relay, locations, host, isDraining, recheck, maxConnectionsPerUser } = deps
  const moves = createConnectionMoves({
    relay,
    nodeId: deps.nodeId,
    // Twice the relay timeout: the node that has the connection first awaits other nodes' answers to its messages.
    timeoutMs: 2 * (deps.relayTimeoutMs ?? RELAY_TIMEOUT_MS),
    release,
    adopt,
  })
  /**
   * Moves of connections to this node, by connection id. Each resolves with the connection, or with null if it did not
   * arrive.
   */
  const arrivals = new Map<string, Promise<AgentConnection | null>>()
  let adoptionCount = 0
  return { hold, moveHere, claim, handOver, receive: moves.receive, endHeld, leave, stop: moves.stop }

  function hold(connection: AgentConnection): void {
    const heldConnections = registry.heldOf(connection.userId)
    if (heldConnections.size >= maxConnectionsPerUser) [...heldConnections][0]!.close(GOING_AWAY)
    connection.heldAt = clock.now()
    registry.hold(connection)
  }

  async function moveHere(connection: AgentConnection, request: ResumeRequest): Promise<void> {
    const { connectionId } = request
    // Waits for an earlier request that moves the same connection here. If it fails, the connection is requested again.
    await arrivals.get(connectionId)
    if (!registry.byId.has(connectionId) && !isDraining())
      await requestMove(request.nodeId, toMoveRequest(connection, request))
    // A draining node closes all of its connections soon, so the agent had better connect to another one at once.
    if (isDraining()) connection.close(RESTARTING)
  }

  function claim(connection: AgentConnection, request: ResumeRequest): HandoverState | null {
    const originalConnection = registry.byId.get(request.connectionId)
    if (!originalConnection || !isClaimable(originalConnection, toMoveRequest(connection, request)))
      return null
    const handoverState = originalConnection.handOver()
    if (handoverState.log.keepsAllAfter(request.lastSeq)) return handoverState
    handoverState.log.clear()
    return null
  }

  function toMoveRequest({ userId, keyId }: AgentConnection, request: ResumeRequest): MoveRequest {
    const { connectionId, secretHash, lastSeq } = request
    return { connectionId, userId, keyId, secretHash, lastSeq }
  }

  /**
   * Hands a connection over to another node. It is deregistered when this returns; its state follows when its pending
   * sends are settled. A connection that is still moving here is handed over once it has arrived. Null if it is not
   * here or may not be handed over; an empty object if a message that the agent missed is no longer kept.
   */
  function release(moveRequest: MoveRequest, isAwaited: () => boolean): Promise<object | null> | null {
    const arrival = arrivals.get(moveRequest.connectionId)
    if (arrival) return arrival.then(() => (isAwaited() ? release(moveRequest, isAwaited) : null))
    const connection = registry.byId.get(moveRequest.connectionId)
    if (!connection || !isClaimable(connection, moveRequest)) return null
    const { state, heldAt, heldSeq, resumeHash: secretHash, address, client } = connection
    const { log, sends } = connection.handOver()
    // Includes messages that the agent has received: the node that takes over may have kept them too, and must
    // recognise them as duplicates.
    const messages =
      moveRequest.secretHash === null || log.keepsAllAfter(moveRequest.lastSeq) ? log.after(0) : null
    log.clear()
    if (!messages) return Promise.resolve({})
    const isHeld = state === 'held'
    const movedState = {
      seq: log.seq,
      heldSeq: isHeld ? heldSeq : log.seq,
      heldMs: isHeld ? clock.now() - heldAt : 0,
      secretHash,
      address,
      client,
      passed: [...(log.leftNodes ?? []), [deps.nodeId, deps.messages.lastNumber]].slice(-MAX_LEFT_NODES),
      messages: toMovedMessages(messages),
    }
    const sendsSettled = sends?.settled() ?? Promise.resolve()
    return sendsSettled.then(() => ({ ...movedState, sends: sends?.state() ?? null }))
  }

  /**
   * Whether the connection may be handed over to the node that sent this request. A request without a hash answers an
   * offer that this node made while shutting down.
   */
  function isClaimable(connection: AgentConnection, { userId, keyId, secretHash }: MoveRequest): boolean {
    const { resumeHash } = connection
    if (connection.userId !== userId || connection.keyId !== keyId || resumeHash === null) return false
    return secretHash === null ? isDraining() && connection.state === 'held' : equals(resumeHash, secretHash)
  }

  /**
   * Moves a connection here from another node, as a broken one. Messages that other nodes send to it after the request
   * reach this node and not the old one; messages of this node's own agents reach this node from now on. Resolves with
   * null if the connection did not arrive.
   */
  function requestMove(issuer: string, moveRequest: MoveRequest): Promise<AgentConnection | null> {
    if (relay.currentPeers().length === 0) return Promise.resolve(null)
    const { connectionId } = moveRequest
    const connection = createHeldConnection(moveRequest)
    const arrival = requestAndRestore(issuer, moveRequest, connection).finally(() => {
      arrivals.delete(connectionId)
      registry.arriving.delete(connection)
    })
    arrivals.set(connectionId, arrival)
    const arrivalSuccess = arrival.then(found => found !== null)
    registry.arriving.set(connection, arrivalSuccess)
    return arrival
  }

  async function requestAndRestore(
    issuer: string,
    moveRequest: MoveRequest,
    connection: AgentConnection,
  ): Promise<AgentConnection | null> {
    registry.unordered.add(connection)
    // Before the request, nodes that send to the connection must know that it will be here; otherwise messages after
    // the request would be lost.
    await locations.enter(connection.identity)
    const onOrdered = () => registry.unordered.delete(connection)
    const state = connection.state === 'closed' ? null : await moves.request(issuer, moveRequest, onOrdered)
    const isOrdered = !registry.unordered.delete(connection)
    if (connection.state === 'closed') return null
    const movedState = isOrdered ? parseMovedState(state) : null
    if (movedState && restore(connection, movedState, moveRequest)) return connection
    connection.close(GOING_AWAY)
    return null
  }

  function createHeldConnection({ connectionId, userId, keyId }: ConnectionIdentity): AgentConnection {
    const claims = { agentId: userId, keyId, scopes: null, expiresAt: Number.POSITIVE_INFINITY }
    const now = clock.now()
    const log = new MessageLog(userId, budget)
    const caller = { address: '', client: null }
    const connection = new AgentConnection(connectionId, null, claims, caller, now, host, log)
    connection.state = 'held'
    registry.add(connection)
    hold(connection)
    return connection
  }

  /**
   * Merges the messages of the state that the old node sent, and those that arrived on this node during the move, into
   * a new log. False if their order is uncertain, or if the log cannot keep all messages of the old node that the agent
   * has not received.
   */
  function restore(connection: AgentConnection, movedState: MovedState, moveRequest: MoveRequest): boolean {
    const { userId, log: recentLog } = connection
    const { seq, messages } = movedState
    const bytes = messages.reduce((sum, [, frame]) => sum + frame.length, 0)
    const cost = moveRequest.secretHash === null ? 1 : REQUESTED_MOVE_COST
    deps.ownerLimits.chargeDeliveries(userId, 1, cost * bytes, clock.now())
    const log = new MessageLog(userId, budget, seq - messages.length)
    log.leftNodes = movedState.passed
    const messagesOfOld = messages.map(([origin, frame]) => new KeptMessage(frame, origin))
    // Messages that were written to the agent must keep their sequence numbers, which it may know.
    const writtenMessages = messagesOfOld.slice(0, Math.max(0, movedState.heldSeq - log.seq))
    const unwrittenMessages = messagesOfOld.slice(writtenMessages.length)
    const [writtenOrigins, unwrittenOrigins] = [originsOf(writtenMessages), originsOf(unwrittenMessages)]
    // The old node may have added a message to this connection's log before it handed the connection over, but sent it
    // to the other nodes afterwards. Such a message arrives here too, although the old node's log has it already.
    const messagesOfNew = recentLog.after(0)
    const fromNew = messagesOfNew.filter(
      message =>
        unwrittenOrigins.has(message.origin) ||
        !(writtenOrigins.has(message.origin) || log.wasSentBeforeMove(message)),
    )
    const merged = mergeInOrder(writtenMessages, unwrittenMessages, fromNew, messagesOfNew)
    for (const message of merged ?? []) log.add(message)
    recentLog.clear()
    connection.log = log
    connection.sends = movedState.sends && new NumberedSends(movedState.sends)
    connection.resumeHash = movedState.secretHash
    connection.address = movedState.address
    connection.client = movedState.client
    connection.heldAt = clock.now() - movedState.heldMs
    connection.heldSeq = movedState.heldSeq
    return merged !== null && log.floor <= Math.max(moveRequest.lastSeq, seq - messages.length)
  }

  /** Requests offered connections, at most MAX_ADOPTING at once. Node `from` offers the others again, to any node. */
  function adopt(from: string, connections: readonly ConnectionIdentity[]): void {
    for (const identity of isDraining() ? [] : connections) {
      const isHere = registry.byId.has(identity.connectionId)
      if (adoptionCount < MAX_ADOPTING && !isHere) void adoptConnection(from, identity)
    }
  }

  /**
   * Moves a connection here. If the event of a revocation arrived before the connection, loading the key's status again
   * ends the connection.
   */
  async function adoptConnection(from: string, identity: ConnectionIdentity): Promise<void> {
    adoptionCount++
    const connection = await requestMove(from, { ...identity, secretHash: null, lastSeq: 0 })
    adoptionCount--
    if (connection) recheck(connection.keyId)
  }

  function endHeld(): void {
    for (const connection of registry.held(registry.heldCount)) connection.close(GOING_AWAY)
  }

  async function leave(timeoutMs: number): Promise<void> {
    const timeout = timers.setTimeout(timeoutMs, undefined, { ref: false })
    await Promise.race([moves.released(), timeout])
    moves.announce('left')
    await Promise.race([relay.flush(), timeout])
  }

  async function handOver(timeoutMs: number): Promise<void> {
    moves.announce('leaving')
    const deadline = clock.now() + timeoutMs
    for (let round = 0; clock.now() < deadline; round++) {
      const targetNodes = moves.targetNodes()
      // Connections that are still moving here are offered once they have arrived.
      const batch = registry.held(MAX_OFFERED).filter(each => !registry.arriving.has(each))
      if (targetNodes.length === 0 || (batch.length === 0 && registry.arriving.size === 0)) return
      const identities = batch.map(({ id, userId, keyId }) => ({
        connectionId: id,
        userId,
        keyId,
      }))
      if (identities.length > 0) moves.offer(targetNodes[round % targetNodes.length]!, identities)
      const roundDeadline = Math.min(deadline, clock.now() + (identities.length > 0 ? TAKE_OVER_MS : POLL_MS))
      do await timers.setTimeout(POLL_MS)
      while (clock.now() < roundDeadline && batch.some(({ state }) => state === 'held'))
    }
  }
}
