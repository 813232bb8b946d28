import type { AgentFrame, FrameErrorCode, Json, ServerFrame } from '@keyway/sdk/protocol'
import { HUB_MAX_FRAME_BYTES } from '@keyway/sdk/protocol'
import type { Clock } from '../clock.ts'
import type { AgentConnection } from './agent-connection.ts'
import { nodeOfRequester } from './api-requests.ts'
import { BAD_MESSAGE, RATE_LIMITED } from './close-codes.ts'
import { MAX_SEQ_BYTES } from './message-log.ts'
import type { Messages } from './messages.ts'
import type { Relay } from './node-relay.ts'
import { type OwnerLimits, type RateDecision, takeFrame } from './rate-limits.ts'
import type { Renewals } from './renewals.ts'
import type { Watches } from './watches.ts'

/** The maximum frame size as shown in error details. */
export const MAX_FRAME_SIZE = `${HUB_MAX_FRAME_BYTES / 1024} KiB`
/**
 * Limits of one message over all its fragments; ws closes with 1009 above the size and with 1008 above the number of
 * fragments. That number is small because a message counts once towards the frame limits.
 */
export const FRAME_LIMITS = { maxPayload: HUB_MAX_FRAME_BYTES, maxFragments: 128 }
/** A message counts towards its owner's limit once for each started unit of this size. */
const FRAME_UNIT_BYTES = 8 * 1024
/** Additional units of a renewal, which verifies a signature. */
const RENEWAL_UNITS = 10
/** Maximum lengths of fields, in characters. */
export const MAX_FRAME_ID_LENGTH = 128
export const MAX_TOKEN_LENGTH = 8192
const MAX_TARGET_LENGTH = 64
/** Maximum nesting of `data`, as in bodies of the API: parsers of receivers fail beyond limits of their own. */
export const MAX_DATA_LEVELS = 64

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

/** Handles the frames of agents. All kinds count towards the limits of rate-limits.ts. */
export interface Frames {
  /** Handles the frames of agents; refuses invalid frames; closes the connection if it is not a JSON object. */
  receive(connection: AgentConnection, data: Buffer, isBinary: boolean): void
  /** Answers a ping of RFC 6455, unless it exceeds the limit. */
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
      const decision = count(connection, 1 + Math.floor(data.length / FRAME_UNIT_BYTES))
      if (decision === 'close') return
      const read = readFrame(data, isBinary)
      if (read.outcome === 'bad_message') connection.close(BAD_MESSAGE)
      else if (decision === 'refuse')
        connection.fail('rate_limited', 'Too many frames; slow down.', idOfRead(read))
      else if (read.outcome === 'error') messages.refuse(connection, read)
      else handle(connection, read.frame)
    },
    receivePing(connection, data) {
      if (count(connection, 1) === 'pass') connection.pong(data)
    },
    receivePong(connection) {
      count(connection, 1)
      connection.receivedPong()
    },
  }

  /** Charges a frame to its connection and its owner; on `close` the connection has been closed. */
  function count(connection: AgentConnection, units: number): RateDecision {
    const now = clock.now()
    connection.lastReceivedAt = now
    const own = takeFrame(connection.frames, now)
    const owners = ownerLimits.takeFrame(connection.userId, units, now)
    if (own === 'close' || owners === 'close') {
      ownerLimits.chargeFlood(connection.userId, now)
      connection.closeAndDiscard(RATE_LIMITED)
      return 'close'
    }
    return own === 'refuse' ? own : owners
  }

  function handle(connection: AgentConnection, frame: AgentFrame): void {
    if (frame.type === 'ping') void pong(connection)
    else if (connection.state === 'pending') {
      connection.fail('invalid_frame', 'Wait for `ready` first.', idOfFrame(frame))
    } else if (frame.type === 'token') {
      ownerLimits.takeFrame(connection.userId, RENEWAL_UNITS, connection.lastReceivedAt)
      void renewals.renew(connection, frame.token)
    } else if (frame.type === 'unwatch') watches.unwatch(connection)
    else if (!connection.allows(SCOPE_OF[frame.type]) && !answersApi(frame)) {
      const detail = `The key lacks the scope ${SCOPE_OF[frame.type]}.`
      messages.refuse(connection, { ...frame, code: 'insufficient_scope', detail })
    } else if (frame.type === 'watch') watches.watch(connection, frame.id)
    else void messages.sendFrom(connection, frame)
  }

  /** On a draining node `pong` follows all messages that other nodes sent before the `ping`. */
  async function pong(connection: AgentConnection): Promise<void> {
    if (isDraining()) await relay.catchUp()
    connection.send({ type: 'pong' })
  }
}

/** An answer to the API reaches no other connection, so it needs no scope. */
function answersApi(frame: AgentFrame): boolean {
  return frame.type === 'send' && nodeOfRequester(frame.to) !== null && frame.reply_to !== undefined
}

export type ReadFrame =
  | { outcome: 'frame'; frame: AgentFrame }
  | { outcome: 'error'; code: FrameErrorCode; detail: string; id?: string; seq?: number }
  /** Not one JSON object in one text message: closes with 4400. */
  | { outcome: 'bad_message' }

/** Parses and validates a frame. Never throws. */
export function readFrame(data: Buffer, isBinary: boolean): ReadFrame {
  const frame = isBinary ? null : parseObject(data)
  if (!frame) return { outcome: 'bad_message' }
  switch (frame.type) {
    case 'ping':
      return { outcome: 'frame', frame: { type: 'ping' } }
    case 'token':
      return readToken(frame)
    case 'send': {
      const read = readSend(frame)
      return read.outcome === 'error' && isSeq(frame.seq) ? { ...read, seq: frame.seq } : read
    }
    case 'watch':
      return { outcome: 'frame', frame: { type: 'watch', ...idOf(frame) } }
    case 'unwatch':
      return { outcome: 'frame', frame: { type: 'unwatch' } }
    default:
      return {
        outcome: 'error',
        code: typeof frame.type === 'string' ? 'unknown_type' : 'invalid_frame',
        detail: '`type` must be one of "ping", "token", "send", "watch", "unwatch".',
        ...idOf(frame),
      }
  }
}

function parseObject(data: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(data.toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

function readToken({ token }: Record<string, unknown>): ReadFrame {
  if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH) {
    return invalid(`token: must be an agent token, a text of at most ${MAX_TOKEN_LENGTH} characters.`)
  }
  return { outcome: 'frame', frame: { type: 'token', token } }
}

function readSend(frame: Record<string, unknown>): ReadFrame {
  const { id } = idOf(frame)
  if (id === undefined) return invalid(`id: must be a text of 1 to ${MAX_FRAME_ID_LENGTH} characters.`)
  const { to } = frame
  if (typeof to !== 'string' || to === '' || to.length > MAX_TARGET_LENGTH) {
    return invalid('to: must be a connection id, a key id, or "all".', id)
  }
  if (!Object.hasOwn(frame, 'data')) return invalid('data: is missing; null is a value.', id)
  const replyTo = frame.reply_to ?? undefined
  if (replyTo !== undefined && !isFrameId(replyTo)) {
    return invalid(`reply_to: must be a text of 1 to ${MAX_FRAME_ID_LENGTH} characters.`, id)
  }
  const seq = frame.seq ?? undefined
  if (seq !== undefined && !isSeq(seq)) return invalid('seq: must be a whole number from 1 on.', id)
  const data = frame.data as Json
  const options = { ...(replyTo && { reply_to: replyTo }), ...(seq && { seq }) }
  return { outcome: 'frame', frame: { type: 'send', id, to, data, ...options } }
}

function isSeq(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}

function idOf({ id }: Record<string, unknown>): { id?: string } {
  return isFrameId(id) ? { id } : {}
}

function isFrameId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_FRAME_ID_LENGTH
}

function invalid(detail: string, id?: string): ReadFrame {
  return { outcome: 'error', code: 'invalid_frame', detail, ...(id === undefined ? {} : { id }) }
}

function idOfRead(read: Exclude<ReadFrame, { outcome: 'bad_message' }>): string | undefined {
  if (read.outcome === 'error') return read.id
  return idOfFrame(read.frame)
}

function idOfFrame(frame: AgentFrame): string | undefined {
  return 'id' in frame ? frame.id : undefined
}

/**
 * Encodes a `message` frame once for all receivers, without its number; null if it is longer than the limit, or has more
 * than MAX_DATA_LEVELS.
 */
export function encodeMessage(
  message: Omit<Extract<ServerFrame, { type: 'message' }>, 'type' | 'seq'>,
): string | null {
  const { id, from, from_key_id, reply_to, data } = message
  if (isDeeperThan(MAX_DATA_LEVELS, data)) return null
  // `type` first: the number of the message is inserted after it.
  const frame = JSON.stringify({ type: 'message', id, from, from_key_id, reply_to, data })
  return Buffer.byteLength(frame) + MAX_SEQ_BYTES <= HUB_MAX_FRAME_BYTES ? frame : null
}

function isDeeperThan(levels: number, data: Json): boolean {
  if (typeof data !== 'object' || data === null) return false
  return levels === 0 || Object.values(data).some(each => isDeeperThan(levels - 1, each))
}
