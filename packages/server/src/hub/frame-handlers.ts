import type { AgentFrame, FrameErrorCode, ServerFrame } from '@keyway/sdk/protocol'
import type { Clock } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { BAD_MESSAGE, type Ending, RATE_LIMITED } from './close-codes.ts'
import { type ReadFrame, readFrame } from './frames.ts'
import type { Messages } from './messages.ts'
import type { Relay } from './node-relay.ts'
import { frameVerdict } from './rate-limits.ts'
import type { Renewals } from './renewals.ts'

export interface FrameHandlersDeps {
  clock: Clock
  renewals: Pick<Renewals, 'renew'>
  messages: Pick<Messages, 'sendFrom'>
  relay: Pick<Relay, 'catchUp'>
  isDraining(): boolean
  send(connection: AgentConnection, frame: ServerFrame): void
  sendError(connection: AgentConnection, code: FrameErrorCode, detail: string, id?: string): void
  end(connection: AgentConnection, ending: Ending): void
}

/**
 * Carries out what an agent said: `ping`, `token` or `send`. A frame that cannot be read is told, one that is no JSON
 * object closes, and so do far more frames than rate-limits.ts allows.
 */
export type ReceiveFrame = (connection: AgentConnection, data: Buffer, isBinary: boolean) => void

export function createReceiveFrame({
  clock,
  renewals,
  messages,
  relay,
  isDraining,
  send,
  sendError,
  end,
}: FrameHandlersDeps): ReceiveFrame {
  return function receive(connection, data, isBinary) {
    connection.heardAt = clock.now()
    const verdict = frameVerdict(connection.frames, connection.heardAt)
    const read = readFrame(data, isBinary)
    if (verdict === 'close') end(connection, RATE_LIMITED)
    else if (read.outcome === 'bad_message') end(connection, BAD_MESSAGE)
    else if (verdict === 'refuse')
      sendError(connection, 'rate_limited', 'Too many frames; slow down.', idOfRead(read))
    else if (read.outcome === 'error') sendError(connection, read.code, read.detail, read.id)
    else obey(connection, read.frame)
  }

  function obey(connection: AgentConnection, frame: AgentFrame): void {
    if (frame.type === 'ping') void pong(connection)
    else if (connection.state === 'pending') {
      const id = frame.type === 'send' ? frame.id : undefined
      sendError(connection, 'invalid_frame', 'Wait for `ready` first.', id)
    } else if (frame.type === 'token') void renewals.renew(connection, frame.token)
    else if (connection.allows('agents:send')) void messages.sendFrom(connection, frame)
    else sendError(connection, 'insufficient_scope', 'The key lacks the scope agents:send.', frame.id)
  }

  /** To an agent that leaves a draining node, the `pong` says that nothing older than its `ping` is on its way. */
  async function pong(connection: AgentConnection): Promise<void> {
    if (isDraining()) await relay.catchUp()
    send(connection, { type: 'pong' })
  }
}

function idOfRead(read: Exclude<ReadFrame, { outcome: 'bad_message' }>): string | undefined {
  if (read.outcome === 'error') return read.id
  return read.frame.type === 'send' ? read.frame.id : undefined
}
