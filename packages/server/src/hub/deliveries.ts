import type { AgentFrame, FrameErrorCode, ServerFrame } from '@keyway/sdk/protocol'
import type { Clock } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { encodeMessage } from './frames.ts'
import type { Relay } from './node-relay.ts'
import type { Registry } from './registry.ts'

export interface DeliveriesDeps {
  clock: Clock
  registry: Registry
  relay: Pick<Relay, 'ask'>
  send(connection: AgentConnection, frame: ServerFrame): void
  sendError(connection: AgentConnection, code: FrameErrorCode, detail: string, id?: string): void
  /** Whether it was written. */
  writeBytes(connection: AgentConnection, frame: Buffer): boolean
}

export interface Deliveries {
  /** Carries out a `send` frame: the sender hears `sent`, or why not. */
  relayMessage(sender: AgentConnection, frame: Extract<AgentFrame, { type: 'send' }>): Promise<void>
  /** Writes a message frame to the user's connections on this node; returns to how many. */
  write(userId: string, to: string, frame: Buffer, exceptId: string | null): number
  /** The same on all nodes. */
  deliver(userId: string, to: string, frame: Buffer, exceptId: string | null): Promise<number>
}

export function createDeliveries(deps: DeliveriesDeps): Deliveries {
  const { clock, registry, relay, send, sendError, writeBytes } = deps
  return { relayMessage, write, deliver }

  async function relayMessage(
    sender: AgentConnection,
    { id, to, data }: Extract<AgentFrame, { type: 'send' }>,
  ): Promise<void> {
    const frame = encodeMessage({ id, from: sender.id, from_key_id: sender.keyId, data })
    if (!sender.allows('agents:send')) {
      sendError(sender, 'insufficient_scope', 'The key lacks the scope agents:send.', id)
    } else if (!frame) {
      sendError(sender, 'invalid_frame', 'data: is too long or too deep for a frame of 64 KiB.', id)
    } else if (!registry.mayDeliver(sender.userId, clock.now())) {
      sendError(sender, 'rate_limited', 'Too many deliveries of this account; wait a second.', id)
    } else {
      const delivered = await deliver(sender.userId, to, frame, sender.id)
      send(sender, { type: 'sent', id, delivered })
    }
  }

  async function deliver(
    userId: string,
    to: string,
    frame: Buffer,
    exceptId: string | null,
  ): Promise<number> {
    const here = write(userId, to, frame, exceptId)
    // A connection has one place: found here, no other node has it.
    if (to === exceptId || (here > 0 && registry.byId.has(to))) return here
    return here + (await relay.ask({ op: 'deliver', userId, to, frame: frame.toString() }))
  }

  function write(userId: string, to: string, frame: Buffer, exceptId: string | null): number {
    const targets = registry.targets(userId, to, exceptId)
    let written = 0
    for (const target of targets) if (writeBytes(target, frame)) written++
    registry.charge(userId, Math.max(1, targets.length), frame.length)
    return written
  }
}
