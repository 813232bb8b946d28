import timers from 'node:timers/promises'
import { type Clock, SECOND } from '../clock.ts'
import type { ConnectionIdentity, MoveMessage } from '../events.ts'
import { equals } from '../secrets.ts'
import { AgentConnection, type ConnectionHost, type HandedOver } from './agent-connection.ts'
import { GOING_AWAY, RESTARTING } from './close-codes.ts'
import { createConnectionMoves, type MoveRequest } from './connection-moves.ts'
import type { Locations } from './locations.ts'
import { KeptMessage, type MessageBudget, MessageLog } from './message-log.ts'
import { mergeInOrder, originsOf } from './message-order.ts'
import type { Messages } from './messages.ts'
import { type MovedState, parseMovedState, toMovedState } from './moved-state.ts'
import { RELAY_TIMEOUT_MS, type Relay } from './node-relay.ts'
import { NumberedSends } from './numbered-sends.ts'
import type { OwnerLimits } from './rate-limits.ts'
import type { Registry } from './registry.ts'
import type { ResumeRequest } from './resume-token.ts'

/**
 * Maximum number of connections that are offered to another node at once, and how long that node has to take them over.
 */
const OFFERED_AT_ONCE = 100
const OFFER_MS = SECOND / 2
/** Maximum number of offered connections that are moving here at once: each brings up to a MiB of messages. */
export const MAX_ADOPTING = 2 * OFFERED_AT_ONCE
const POLL_MS = 10
/**
 * Maximum number of nodes that a connection remembers to have left: messages of earlier ones were published long ago.
 */
const MAX_PASSED = 8

export interface ResumptionsDeps {
  clock: Clock
  registry: Registry
  budget: MessageBudget
  relay: Pick<Relay, 'publish' | 'peers' | 'responsivePeers' | 'flush'>
  locations: Pick<Locations, 'enter'>
  nodeId: string
  relayTimeoutMs?: number
  /** Maximum number of connections per user on this node, which bounds broken ones, too. */
  maxConnectionsPerUser: number
  isDraining(): boolean
  /** Loads the status of a key again, and ends its connections if it has ended. */
  recheck(keyId: string): void
  host: ConnectionHost
  messages: Pick<Messages, 'lastNumber'>
  ownerLimits: Pick<OwnerLimits, 'chargeDeliveries'>
}

/** Holds broken connections, finds them again on this node or another, and hands them over before a shutdown. */
export interface Resumptions {
  /** Registers a connection as broken; if the owner has too many, the one that broke first is ended. */
  hold(connection: AgentConnection): void
  /** Brings the connection that an agent asks to resume to this node, if another one has it. */
  bringHere(connection: AgentConnection, request: ResumeRequest): Promise<void>
  /**
   * Resumes the connection that an agent asks for, and closes its old socket. Null if it is unknown or not the agent's, or
   * if a message after the last one that the agent received is no longer kept. Until it is registered under its new
   * socket no message reaches it, so the caller must not await anything before that.
   */
  takeUp(connection: AgentConnection, request: ResumeRequest): HandedOver | null
  /** Lets other nodes take over the broken connections; resolves when they have, or after `patienceMs`. */
  handOver(patienceMs: number): Promise<void>
  /** Handles a message of another node. */
  receive(message: MoveMessage): void
  /** Ends the broken connections after events were lost: among these may be messages to them. */
  missedEvents(): void
  /**
   * Announces that this node holds no connections any more; resolves once other nodes can know, or after `patienceMs`.
   */
  leave(patienceMs: number): Promise<void>
  stop(): void
}

export function createResumptions(deps: ResumptionsDeps): Resumptions {
  const { clock, registry, budget, relay, locations, host, isDraining, recheck, maxConnectionsPerUser } = deps
  const moves = createConnectionMoves({
    relay,
    nodeId: deps.nodeId,
    // Twice the relay timeout, since the other node may first await answers to a message.
    timeoutMs: 2 * (deps.relayTimeoutMs ?? RELAY_TIMEOUT_MS),
    release,
    adopt,
  })
  /** Connections that are moving to this node, by id. */
  const arrivals = new Map<string, Promise<AgentConnection | null>>()
  let adopting = 0
  return { hold, bringHere, takeUp, handOver, receive: moves.receive, missedEvents, leave, stop: moves.stop }

  function hold(connection: AgentConnection): void {
    const held = registry.heldOf(connection.userId)
    if (held.size >= maxConnectionsPerUser) [...held][0]!.close(GOING_AWAY)
    connection.heldAt = clock.now()
    registry.hold(connection)
  }

  async function bringHere(connection: AgentConnection, request: ResumeRequest): Promise<void> {
    const { connectionId } = request
    // Waits for an earlier request that moves the same connection here; it may fail.
    await arrivals.get(connectionId)
    if (!registry.byId.has(connectionId) && !isDraining())
      await bring(request.nodeId, wantedBy(connection, request))
    // While this node drains, the connection would have to move again at once, and its agent with it.
    if (isDraining()) connection.close(RESTARTING)
  }

  function takeUp(connection: AgentConnection, request: ResumeRequest): HandedOver | null {
    const found = registry.byId.get(request.connectionId)
    if (!found || !isClaimable(found, wantedBy(connection, request))) return null
    const handedOver = found.handOver()
    if (handedOver.log.reaches(request.lastSeq)) return handedOver
    handedOver.log.clear()
    return null
  }

  function wantedBy({ userId, keyId }: AgentConnection, request: ResumeRequest): MoveRequest {
    const { connectionId, secretHash, lastSeq } = request
    return { connectionId, userId, keyId, secretHash, lastSeq }
  }

  /**
   * Hands a connection over to another node. It is deregistered when this returns; its state follows when its pending
   * sends are settled. A connection that is still moving here is handed over once it has arrived.
   */
  function release(wanted: MoveRequest, isAwaited: () => boolean): Promise<object | null> | null {
    const arrival = arrivals.get(wanted.connectionId)
    if (arrival) return arrival.then(() => (isAwaited() ? release(wanted, isAwaited) : null))
    const connection = registry.byId.get(wanted.connectionId)
    if (!connection || !isClaimable(connection, wanted)) return null
    const { state, heldAt, heldSeq, resumeHash: secretHash, address, client } = connection
    const { log, sends } = connection.handOver()
    // Includes messages that the agent has received, since the other node may have kept them too.
    const messages = wanted.secretHash === null || log.reaches(wanted.lastSeq) ? log.after(0) : null
    log.clear()
    if (!messages) return Promise.resolve({})
    const isHeld = state === 'held'
    const moved = {
      seq: log.seq,
      heldSeq: isHeld ? heldSeq : log.seq,
      heldMs: isHeld ? clock.now() - heldAt : 0,
      secretHash,
      address,
      client,
      passed: [...(log.passed ?? []), [deps.nodeId, deps.messages.lastNumber]].slice(-MAX_PASSED),
      messages: toMovedState(messages),
    }
    const settled = sends?.settled() ?? Promise.resolve()
    return settled.then(() => ({ ...moved, sends: sends?.state() ?? null }))
  }

  /**
   * Whether the request may have the connection. Without a hash it answers an offer of this node before its shutdown.
   */
  function isClaimable(connection: AgentConnection, { userId, keyId, secretHash }: MoveRequest): boolean {
    const { resumeHash } = connection
    if (connection.userId !== userId || connection.keyId !== keyId || resumeHash === null) return false
    return secretHash === null ? isDraining() && connection.state === 'held' : equals(resumeHash, secretHash)
  }

  /**
   * Moves a connection here from another node, as a broken one. Messages that other nodes send to it after the request
   * reach this node and not the old one; messages of this node's own agents reach this node from now on.
   */
  function bring(issuer: string, wanted: MoveRequest): Promise<AgentConnection | null> {
    if (relay.peers().length === 0) return Promise.resolve(null)
    const { connectionId } = wanted
    const arriving = newHeld(wanted)
    const arrival = request(issuer, wanted, arriving).finally(() => {
      arrivals.delete(connectionId)
      registry.arriving.delete(arriving)
    })
    arrivals.set(connectionId, arrival)
    const hasArrived = arrival.then(found => found !== null)
    registry.arriving.set(arriving, hasArrived)
    return arrival
  }

  async function request(
    issuer: string,
    wanted: MoveRequest,
    arriving: AgentConnection,
  ): Promise<AgentConnection | null> {
    registry.unordered.add(arriving)
    // Before the request, nodes that send to it must know that it will be here; otherwise later messages would be lost.
    await locations.enter(arriving.name)
    const onOrdered = () => registry.unordered.delete(arriving)
    const state = arriving.state === 'closed' ? null : await moves.request(issuer, wanted, onOrdered)
    const isOrdered = !registry.unordered.delete(arriving)
    if (arriving.state === 'closed') return null
    const moved = isOrdered ? parseMovedState(state) : null
    if (moved && complete(arriving, moved, wanted.lastSeq)) return arriving
    arriving.close(GOING_AWAY)
    return null
  }

  function newHeld({ connectionId, userId, keyId }: ConnectionIdentity): AgentConnection {
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
   * Merges the messages that arrived with the state and those that arrived here since. False if their order is
   * uncertain, or if not all of them after this sequence number can be kept.
   */
  function complete(arriving: AgentConnection, moved: MovedState, lastSeq: number): boolean {
    const { userId, log: recent } = arriving
    const { seq, messages } = moved
    const bytes = messages.reduce((sum, [, frame]) => sum + frame.length, 0)
    deps.ownerLimits.chargeDeliveries(userId, 1, bytes, clock.now())
    const log = new MessageLog(userId, budget, seq - messages.length)
    log.passed = moved.passed
    const there = messages.map(([origin, frame]) => new KeptMessage(frame, origin))
    // Messages that were written to the agent must keep their sequence numbers, which it may know.
    const written = there.slice(0, Math.max(0, moved.heldSeq - log.seq))
    const [known, missing] = [originsOf(written), originsOf(there.slice(written.length))]
    // The old node may have delivered a message before it handed the connection over, and published it only afterwards.
    const seen = recent.after(0)
    const here = seen.filter(
      message => missing.has(message.origin) || !(known.has(message.origin) || log.hasPassed(message)),
    )
    const joined = mergeInOrder(written, there.slice(written.length), here, seen)
    for (const message of joined ?? []) log.add(message)
    recent.clear()
    arriving.log = log
    arriving.sends = moved.sends && new NumberedSends(moved.sends)
    arriving.resumeHash = moved.secretHash
    arriving.address = moved.address
    arriving.client = moved.client
    arriving.heldAt = clock.now() - moved.heldMs
    arriving.heldSeq = moved.heldSeq
    return joined !== null && log.floor <= Math.max(lastSeq, seq - messages.length)
  }

  /** Connections that are not requested here are offered again, to this node or another one. */
  function adopt(from: string, connections: readonly ConnectionIdentity[]): void {
    for (const name of isDraining() ? [] : connections) {
      if (adopting < MAX_ADOPTING && !registry.byId.has(name.connectionId)) void bringHeld(from, name)
    }
  }

  /**
   * A revocation's event may have arrived before the connection: loading the key's status again ends it in that case.
   */
  async function bringHeld(from: string, name: ConnectionIdentity): Promise<void> {
    adopting++
    const connection = await bring(from, { ...name, secretHash: null, lastSeq: 0 })
    adopting--
    if (connection) recheck(connection.keyId)
  }

  function missedEvents(): void {
    for (const connection of registry.held(registry.heldCount)) connection.close(GOING_AWAY)
  }

  async function leave(patienceMs: number): Promise<void> {
    const end = timers.setTimeout(patienceMs, undefined, { ref: false })
    await Promise.race([moves.released(), end])
    moves.announce('left')
    await Promise.race([relay.flush(), end])
  }

  async function handOver(patienceMs: number): Promise<void> {
    moves.announce('leaving')
    const deadline = clock.now() + patienceMs
    for (let turn = 0; clock.now() < deadline; turn++) {
      const takers = moves.takers()
      // Connections that are still moving here are offered once they have arrived.
      const offered = registry.held(OFFERED_AT_ONCE).filter(each => !registry.arriving.has(each))
      if (takers.length === 0 || (offered.length === 0 && registry.arriving.size === 0)) return
      const names = offered.map(({ id, userId, keyId }) => ({ connectionId: id, userId, keyId }))
      if (names.length > 0) moves.offer(takers[turn % takers.length]!, names)
      const end = Math.min(deadline, clock.now() + (names.length > 0 ? OFFER_MS : POLL_MS))
      do await timers.setTimeout(POLL_MS)
      while (clock.now() < end && offered.some(({ state }) => state === 'held'))
    }
  }
}
