import type { AgentFrame, FrameErrorCode, Json, ServerFrame } from '@keyway/sdk/protocol'
import { HUB_MAX_FRAME_BYTES } from '@keyway/sdk/protocol'
import { MAX_SEQ_BYTES } from './message-log.ts'

/** The maximum frame size as shown in error details. */
export const MAX_FRAME_SIZE = `${HUB_MAX_FRAME_BYTES / 1024} KiB`
/**
 * Limits of one WebSocket message over all its fragments: ws closes the connection with 1009 above the size, and with
 * 1008 above the number of fragments. Few fragments are allowed, since the rate limits do not count them.
 */
export const FRAME_LIMITS = { maxPayload: HUB_MAX_FRAME_BYTES, maxFragments: 128 }
/** Maximum lengths of fields, in characters. */
export const MAX_FRAME_ID_LENGTH = 128
export const MAX_TOKEN_LENGTH = 8192
const MAX_TARGET_LENGTH = 64
/** Maximum nesting of `data`, as in API bodies: deeper values may exceed the limits of receivers' JSON parsers. */
export const MAX_DATA_LEVELS = 64

export type FrameOrError =
  | { outcome: 'frame'; frame: AgentFrame }
  | { outcome: 'error'; code: FrameErrorCode; detail: string; id?: string; seq?: number }
  /** The WebSocket message is binary or not a JSON object: the connection is closed with 4400. */
  | { outcome: 'bad_message' }

/** Parses and validates a frame. Never throws. */
export function readFrame(data: Buffer, isBinary: boolean): FrameOrError {
  const frame = isBinary ? null : parseObject(data)
  if (!frame) return { outcome: 'bad_message' }
  switch (frame.type) {
    case 'ping':
      return { outcome: 'frame', frame: { type: 'ping' } }
    case 'token':
      return readToken(frame)
    case 'send': {
      const result = readSend(frame)
      return result.outcome === 'error' && isSeq(frame.seq) ? { ...result, seq: frame.seq } : result
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

function readToken({ token }: Record<string, unknown>): FrameOrError {
  if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH) {
    return invalidFrame(`token: must be an agent token, a text of at most ${MAX_TOKEN_LENGTH} characters.`)
  }
  return { outcome: 'frame', frame: { type: 'token', token } }
}

function readSend(frame: Record<string, unknown>): FrameOrError {
  const { id } = idOf(frame)
  if (id === undefined) return invalidFrame(`id: must be a text of 1 to ${MAX_FRAME_ID_LENGTH} characters.`)
  const { to } = frame
  if (typeof to !== 'string' || to === '' || to.length > MAX_TARGET_LENGTH) {
    return invalidFrame('to: must be a connection id, a key id, or "all".', id)
  }
  if (!Object.hasOwn(frame, 'data')) return invalidFrame('data: is missing; null is a value.', id)
  const replyTo = frame.reply_to ?? undefined
  if (replyTo !== undefined && !isFrameId(replyTo)) {
    return invalidFrame(`reply_to: must be a text of 1 to ${MAX_FRAME_ID_LENGTH} characters.`, id)
  }
  const seq = frame.seq ?? undefined
  if (seq !== undefined && !isSeq(seq)) return invalidFrame('seq: must be a whole number from 1 on.', id)
  const data = frame.data as Json
  const optionalFields = { ...(replyTo && { reply_to: replyTo }), ...(seq && { seq }) }
  return { outcome: 'frame', frame: { type: 'send', id, to, data, ...optionalFields } }
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

function invalidFrame(detail: string, id?: string): FrameOrError {
  return { outcome: 'error', code: 'invalid_frame', detail, ...(id === undefined ? {} : { id }) }
}

/**
 * Encodes a `message` frame once for all receivers, without a sequence number. Null if the longest sequence number
 * would make it longer than HUB_MAX_FRAME_BYTES, or if its data has more than MAX_DATA_LEVELS levels.
 */
export function encodeMessage(
  message: Omit<Extract<ServerFrame, { type: 'message' }>, 'type' | 'seq'>,
): string | null {
  const { id, from, from_key_id, reply_to, data } = message
  if (isDeeperThan(MAX_DATA_LEVELS, data)) return null
  // `type` comes first, since the sequence number is inserted after it.
  const frame = JSON.stringify({ type: 'message', id, from, from_key_id, reply_to, data })
  return Buffer.byteLength(frame) + MAX_SEQ_BYTES <= HUB_MAX_FRAME_BYTES ? frame : null
}

function isDeeperThan(levels: number, data: Json): boolean {
  if (typeof data !== 'object' || data === null) return false
  return levels === 0 || Object.values(data).some(each => isDeeperThan(levels - 1, each))
}
