import type { AgentFrame, Answer, FrameErrorCode, Json } from '@keyway/sdk/protocol'
import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import type { RelayCommand } from '../events.ts'
import { newId } from '../ids.ts'
import type { AgentConnection } from './agent-connection.ts'
import { type ApiRequests, nodeOfRequester } from './api-requests.ts'
import { encodeMessage, MAX_DATA_LEVELS, MAX_FRAME_SIZE } from './frame.ts'
import type { HubPorts } from './hub-ports.ts'
import type { Locations } from './locations.ts'
import { KeptMessage } from './message-log.ts'
import { messageOrigin, type Relay } from './node-relay.ts'
import { NO_RECEIVERS, NumberedSends, type Outcome } from './numbered-sends.ts'
import type { Presence } from './presence.ts'
import type { OwnerLimits } from './rate-limits.ts'
import type { Registry } from './registry.ts'

type SendFrame = Extract<AgentFrame, { type: 'send' }>

export interface MessagesDeps {
  clock: Clock
  ports: Pick<HubPorts, 'meter'>
  nodeId: string
  registry: Registry
  ownerLimits: OwnerLimits
  relay: Pick<Relay, 'request' | 'currentPeers'>
  locations: Pick<Locations, 'nodesOf'>
  presence: Pick<Presence, 'list'>
  apiRequests: Pick<ApiRequests, 'begin' | 'receiveAnswer' | 'requester'>
}

/** An agent's answer, which is null if none came in time, and how long the wait for it was, in milliseconds. */
export interface AgentAnswer {
  answer: Answer | null
  afterMs: number
}

/** Delivers messages of agents and of the API to connections of the same owner, on all nodes. */
export interface Messages {
  /** Handles a `send` frame: the sender gets `sent`, or an error. */
  sendFrom(sender: AgentConnection, frame: SendFrame): Promise<void>
  /**
   * Refuses a frame permanently, with an error to its sender. A refused `send` uses up its sequence number, if that is
   * the next one.
   */
  refuse(sender: AgentConnection, refusal: Refusal): void
  /** See `Hub.sendTo`. */
  sendFromApi(userId: string, to: string, data: Json, replyTo?: string): Promise<Outcome | null>
  /** See `Hub.ask`. */
  ask(userId: string, connectionId: string, data: Json): Promise<AgentAnswer | null>
  /** The number of the last message that was sent on this node, as in `messageOrigin`; 0 before the first. */
  readonly lastNumber: number
  /**
   * Delivers a message of another node to the user's connections on this one; if it answers a request that was made by
   * an HTTP call on this node, only to that request. Returns how many connections or requests got it.
   */
  receive(command: Extract<RelayCommand, { op: 'deliver' }>, origin: string): Outcome | Promise<Outcome>
}

interface Refusal {
  code: FrameErrorCode
  detail: string
  id?: string
  seq?: number
}

export function createMessages(deps: MessagesDeps): Messages {
  const { clock, nodeId, registry, ownerLimits, relay, locations, presence, apiRequests } = deps
  const { meter } = deps.ports
  let lastNumber = 0

  return {
    sendFrom,
    refuse,
    sendFromApi,
    ask,
    get lastNumber() {
      return lastNumber
    },
    receive: (command, origin) => outcomeOf(write({ ...command, origin }, true)),
  }

  async function sendFrom(
    sender: AgentConnection,
    { id, to, data, reply_to, seq }: SendFrame,
  ): Promise<void> {
    const { userId, keyId } = sender
    const sends = seq === undefined ? null : sendsOf(sender)
    const isRepeated = sends !== null && seq! <= sends.accepted
    if (sends && seq! > sends.accepted + 1) {
      return sender.sendError('out_of_order', `The next number is ${sends.accepted + 1}, not ${seq}.`, id)
    }
    // Checked before the message is encoded, so that a refusal costs little.
    if (!isRepeated && !ownerLimits.mayDeliver(userId, clock.now())) {
      return sender.sendError('rate_limited', 'Too many deliveries of this account; wait a second.', id)
    }
    const frame = encodeMessage({ id, from: sender.id, from_key_id: keyId, data, reply_to })
    if (!frame) {
      const detail = `data: is too long for a frame of ${MAX_FRAME_SIZE}, or has more than ${MAX_DATA_LEVELS} levels.`
      return refuse(sender, { code: 'invalid_frame', detail, id, seq })
    }
    if (isRepeated) return acknowledgeAgain(sender, sends, id, seq!)
    sends?.accept(seq!)
    meter.count(userId, keyId, 'messagesSent')
    const outcome = await deliver(userId, to, frame, sender)
    sends?.setOutcome(seq!, outcome)
    sender.send({ type: 'sent', id, ...outcome })
  }

  async function acknowledgeAgain(
    sender: AgentConnection,
    sends: NumberedSends,
    id: string,
    seq: number,
  ): Promise<void> {
    if (!sends.outcomeOf(seq)) await sends.settled()
    sender.send({ type: 'sent', id, ...(sends.outcomeOf(seq) ?? NO_RECEIVERS) })
  }

  function refuse(sender: AgentConnection, { code, detail, id, seq }: Refusal): void {
    if (seq !== undefined) sendsOf(sender).refuse(seq)
    sender.sendError(code, detail, id)
  }

  async function sendFromApi(
    userId: string,
    to: string,
    data: Json,
    replyTo?: string,
  ): Promise<Outcome | null> {
    if (!ownerLimits.mayDeliver(userId, clock.now())) throw tooManyMessages()
    const id = newId(clock.now())
    const frame = encodeMessage({ id, from: 'api', from_key_id: null, data, reply_to: replyTo })
    if (!frame) throw new KeywayError('payload_too_large', `The message is longer than ${MAX_FRAME_SIZE}.`)
    const outcome = await deliver(userId, to, frame, null)
    if (outcome.delivered + outcome.held > 0) return outcome
    const rows = await presence.list(userId)
    const isConnected = rows.some(row => to === 'all' || row.connectionId === to || row.keyId === to)
    return isConnected ? NO_RECEIVERS : null
  }

  async function ask(userId: string, connectionId: string, data: Json): Promise<AgentAnswer | null> {
    const request = ownerLimits.mayDeliver(userId, clock.now()) ? apiRequests.begin(userId) : null
    if (!request) throw tooManyMessages()
    const { id } = request
    const frame = encodeMessage({ id, from: apiRequests.requester, from_key_id: null, data })
    const askedAt = clock.now()
    const { delivered, held } = frame ? await deliver(userId, connectionId, frame, null) : NO_RECEIVERS
    if (delivered + held === 0) request.end()
    const answer = await request.answer
    return delivered + held > 0 ? { answer, afterMs: Math.round(clock.now() - askedAt) } : null
  }

  /**
   * Delivers a message to the connections that `to` names, on all nodes, except to its sender; if it answers a request
   * that was made by an HTTP call, only to that request. Returns how many connections or requests got it.
   */
  async function deliver(
    userId: string,
    to: string,
    frame: string,
    except: AgentConnection | null,
  ): Promise<Outcome> {
    if (to === apiRequests.requester)
      return apiRequests.receiveAnswer(userId, frame) ? ONE_DELIVERED : NO_RECEIVERS
    const number = ++lastNumber
    const message = { userId, to, frame, ...(except ? { except: except.id } : {}) }
    const localResult = write({ ...message, origin: messageOrigin(nodeId, number) }, false)
    // If `to` is the id of a connection of this node, no other node has that connection, unless it is still moving to
    // this node: then it may end up on another node.
    const isOnlyLocal = localResult.isReached && localResult.arriving.length === 0 && registry.byId.has(to)
    if (to === except?.id || isOnlyLocal) return outcomeOf(localResult)
    const requestingNode = nodeOfRequester(to)
    const nodes =
      requestingNode === null
        ? locations.nodesOf(userId, to)
        : relay.currentPeers().filter(id => id === requestingNode)
    const command = { op: 'deliver', ...message, number } as const
    // Not awaited if the nodes are known already, so that messages keep their order.
    const remoteOutcome = await relay.request('then' in nodes ? await nodes : nodes, command)
    const { delivered, held } = await outcomeOf(localResult)
    return { delivered: delivered + remoteOutcome.delivered, held: held + remoteOutcome.held }
  }

  /**
   * Writes a message to the connections of this node that `to` names; if it answers a request that was made by an HTTP
   * call on this node, only to that request. `isRelayed` if it came from another node.
   */
  function write({ userId, to, frame, origin, except }: EncodedMessage, isRelayed: boolean): WriteResult {
    if (to === apiRequests.requester)
      return toWriteResult(apiRequests.receiveAnswer(userId, frame) ? ONE_DELIVERED : NO_RECEIVERS)
    const targets = registry.targets(userId, to, except ?? null)
    const result = toWriteResult({ ...NO_RECEIVERS })
    const message = targets.length > 0 ? new KeptMessage(frame, origin) : null
    for (const target of targets) {
      if (isRelayed && registry.unordered.has(target)) continue
      const delivery = target.deliver(message!)
      if (!delivery) continue
      const arrival = registry.arriving.get(target)
      if (arrival) result.arriving.push(arrival)
      else result.outcome[delivery]++
      result.isReached = true
      meter.count(userId, target.keyId, 'messagesReceived')
    }
    ownerLimits.chargeDeliveries(userId, Math.max(1, targets.length), frame.length, clock.now())
    return result
  }
}

interface WriteResult {
  outcome: Outcome
  /** Whether a connection or a pending API request got the message, or a held or moving connection may get it. */
  isReached: boolean
  /** For each connection that is moving to this node, whether it arrives and so gets the message. */
  arriving: Promise<boolean>[]
}

function toWriteResult(outcome: Outcome): WriteResult {
  return { outcome, isReached: outcome.delivered > 0, arriving: [] }
}

function outcomeOf({ outcome, arriving }: WriteResult): Outcome | Promise<Outcome> {
  if (arriving.length === 0) return outcome
  return Promise.all(arriving).then(arrived => ({
    delivered: outcome.delivered,
    held: outcome.held + arrived.filter(Boolean).length,
  }))
}

interface EncodedMessage {
  userId: string
  to: string
  frame: string
  origin: string
  /** The id of the sender's connection, which is excluded. */
  except?: string
}

function sendsOf(sender: AgentConnection): NumberedSends {
  sender.sends ??= new NumberedSends()
  return sender.sends
}

const ONE_DELIVERED: Outcome = { delivered: 1, held: 0 }

function tooManyMessages(): KeywayError {
  return new KeywayError('rate_limited', 'Too many messages to this account; wait a second.', {
    retryAfter: 1,
  })
}
