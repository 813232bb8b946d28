import type { AgentFrame } from '@keyway/sdk/protocol'
import type { Clock } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { nodeOfRequester } from './api-requests.ts'
import { BAD_MESSAGE, RATE_LIMITED } from './close-codes.ts'
import { type FrameOrError, readFrame } from './frame.ts'
import type { Messages } from './messages.ts'
import type { Relay } from './node-relay.ts'
import { type OwnerLimits, type RateDecision, takeFrame } from './rate-limits.ts'
import type { Renewals } from './renewals.ts'
import type { Watches } from './watches.ts'

/** A WebSocket message counts once towards its owner's limit, and once more for each full unit of this size. */
const FRAME_UNIT_BYTES = 8 * 1024
/** Additional units charged for a renewal, since it verifies a signature. */
const RENEWAL_UNITS = 10

const SCOPE_OF = { send: 'agents:send', watch: 'agents:read' } as const

export interface FramesDeps {
  clock: Clock
  ownerLimits: OwnerLimits
  renewals: Pick<Renewals, 'renew'>
  messages: Pick<Messages, 'sendFrom' | 'refuse'>
  watches: Pick<Watches, 'watch' | 'unwatch'>
  relay: Pick<Relay, 'catchUp'>
  isDraining(): boolean
}

/**
 * Handles the frames of agents. All kinds count towards the limits of rate-limits.ts; an agent that goes far beyond
 * them is disconnected.
 */
export interface Frames {
  /**
   * Handles a frame: refuses it if it is invalid or exceeds a limit, and closes the connection if it is binary or not a
   * JSON object.
   */
  receive(connection: AgentConnection, data: Buffer, isBinary: boolean): void
  /** Answers a ping of RFC 6455, unless it exceeds a limit or the agent reads too slowly. */
  receivePing(connection: AgentConnection, data: Buffer): void
  receivePong(connection: AgentConnection): void
}

export function createFrames({
  clock,
  ownerLimits,
  renewals,
  messages,
  watches,
  relay,
  isDraining,
}: FramesDeps): Frames {
  return {
    receive(connection, data, isBinary) {
      const decision = charge(connection, 1 + Math.floor(data.length / FRAME_UNIT_BYTES))
      if (decision === 'close') return
      const result = readFrame(data, isBinary)
      if (result.outcome === 'bad_message') connection.close(BAD_MESSAGE)
      else if (decision === 'refuse')
        connection.sendError('rate_limited', 'Too many frames; slow down.', idOfResult(result))
      else if (result.outcome === 'error') messages.refuse(connection, result)
      else handle(connection, result.frame)
    },
    receivePing(connection, data) {
      if (charge(connection, 1) === 'pass') connection.pong(data)
    },
    receivePong(connection) {
      charge(connection, 1)
      connection.receivedPong()
    },
  }

  /** Charges a frame to its connection and its owner; on `close` the connection has been closed. */
  function charge(connection: AgentConnection, units: number): RateDecision {
    const now = clock.now()
    connection.lastReceivedAt = now
    const connectionDecision = takeFrame(connection.frameBucket, now)
    const ownerDecision = ownerLimits.takeFrame(connection.userId, units, now)
    if (connectionDecision === 'close' || ownerDecision === 'close') {
      ownerLimits.chargeFlood(connection.userId, now)
      connection.closeAndDiscard(RATE_LIMITED)
      return 'close'
    }
    return connectionDecision === 'refuse' ? connectionDecision : ownerDecision
  }

  function handle(connection: AgentConnection, frame: AgentFrame): void {
    if (frame.type === 'ping') void answerPing(connection)
    else if (connection.state === 'pending') {
      connection.sendError('invalid_frame', 'Wait for `ready` first.', idOfFrame(frame))
    } else if (frame.type === 'token') {
      ownerLimits.takeFrame(connection.userId, RENEWAL_UNITS, connection.lastReceivedAt)
      void renewals.renew(connection, frame.token)
    } else if (frame.type === 'unwatch') watches.unwatch(connection)
    else if (!connection.allows(SCOPE_OF[frame.type]) && !isAnswerToApi(frame)) {
      const detail = `The key lacks the scope ${SCOPE_OF[frame.type]}.`
      messages.refuse(connection, { ...frame, code: 'insufficient_scope', detail })
    } else if (frame.type === 'watch') watches.watch(connection, frame.id)
    else void messages.sendFrom(connection, frame)
  }

  /**
   * On a draining node `pong` is sent after all messages that other nodes sent before the `ping`, within two seconds:
   * an agent that has connected elsewhere learns from it when the old connection has delivered them.
   */
  async function answerPing(connection: AgentConnection): Promise<void> {
    if (isDraining()) await relay.catchUp()
    connection.send({ type: 'pong' })
  }
}

/** Whether a frame answers a request of the API. It needs no scope, since the answer reaches no other connection. */
function isAnswerToApi(frame: AgentFrame): boolean {
  return frame.type === 'send' && nodeOfRequester(frame.to) !== null && frame.reply_to !== undefined
}

function idOfResult(result: Exclude<FrameOrError, { outcome: 'bad_message' }>): string | undefined {
  if (result.outcome === 'error') return result.id
  return idOfFrame(result.frame)
}

function idOfFrame(frame: AgentFrame): string | undefined {
  return 'id' in frame ? frame.id : undefined
}
