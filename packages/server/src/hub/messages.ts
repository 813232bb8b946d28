import type { AgentFrame, Json } from '@keyway/sdk/protocol'
import type { Clock } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { AgentConnection } from './agent-connection.ts'
import { encodeMessage, MAX_FRAME_SIZE } from './frames.ts'
import type { HubPorts } from './hub-ports.ts'
import type { Relay } from './node-relay.ts'
import type { Presence } from './presence.ts'
import type { OwnerLimits } from './rate-limits.ts'
import type { Registry } from './registry.ts'

export interface MessagesDeps {
  clock: Clock
  ports: Pick<HubPorts, 'meter'>
  registry: Registry
  ownerLimits: OwnerLimits
  relay: Pick<Relay, 'broadcast'>
  presence: Pick<Presence, 'list'>
}

/** Delivers messages of agents and of the API to connections of the same owner, on all nodes. */
export interface Messages {
  /** Handles a `send` frame: the sender gets `sent`, or an error. */
  sendFrom(sender: AgentConnection, frame: Extract<AgentFrame, { type: 'send' }>): Promise<void>
  /** `Hub.sendTo` */
  sendFromApi(userId: string, to: string, data: Json, replyTo?: string): Promise<number | null>
  /** Writes a message frame to the user's connections on this node; returns their number. */
  write(userId: string, to: string, frame: Buffer, exceptId: string | null): number
}

export function createMessages(deps: MessagesDeps): Messages {
  const { clock, registry, ownerLimits, relay, presence } = deps
  const { meter } = deps.ports
  return { sendFrom, sendFromApi, write }

  async function sendFrom(
    sender: AgentConnection,
    { id, to, data, reply_to }: Extract<AgentFrame, { type: 'send' }>,
  ): Promise<void> {
    const frame = encodeMessage({ id, from: sender.id, from_key_id: sender.keyId, data, reply_to })
    if (!frame) {
      sender.fail('invalid_frame', `data: is too long or too deep for a frame of ${MAX_FRAME_SIZE}.`, id)
    } else if (!ownerLimits.mayDeliver(sender.userId, clock.now())) {
      sender.fail('rate_limited', 'Too many deliveries of this account; wait a second.', id)
    } else {
      meter.count(sender.userId, sender.keyId, 'messagesSent')
      const delivered = await deliver(sender.userId, to, frame, sender.id)
      sender.send({ type: 'sent', id, delivered })
    }
  }

  async function sendFromApi(
    userId: string,
    to: string,
    data: Json,
    replyTo?: string,
  ): Promise<number | null> {
    const id = newId(clock.now())
    const frame = encodeMessage({ id, from: 'api', from_key_id: null, data, reply_to: replyTo })
    if (!frame) throw new KeywayError('payload_too_large', `The message is longer than ${MAX_FRAME_SIZE}.`)
    if (!ownerLimits.mayDeliver(userId, clock.now())) {
      throw new KeywayError('rate_limited', 'Too many messages to this account; wait a second.', {
        retryAfter: 1,
      })
    }
    const delivered = await deliver(userId, to, frame, null)
    if (delivered > 0) return delivered
    const rows = await presence.list(userId)
    return rows.some(row => to === 'all' || row.connectionId === to || row.keyId === to) ? 0 : null
  }

  /** Returns the number of connections that got it, on all nodes. */
  async function deliver(
    userId: string,
    to: string,
    frame: Buffer,
    exceptId: string | null,
  ): Promise<number> {
    const here = write(userId, to, frame, exceptId)
    // If `to` is a connection of this node, no other node has it.
    if (to === exceptId || (here > 0 && registry.byId.has(to))) return here
    return here + (await relay.broadcast({ op: 'deliver', userId, to, frame: frame.toString() }))
  }

  function write(userId: string, to: string, frame: Buffer, exceptId: string | null): number {
    const targets = registry.targets(userId, to, exceptId)
    let written = 0
    for (const target of targets) {
      if (!target.write(frame)) continue
      written++
      meter.count(userId, target.keyId, 'messagesReceived')
    }
    ownerLimits.chargeDeliveries(userId, Math.max(1, targets.length), frame.length, clock.now())
    return written
  }
}
