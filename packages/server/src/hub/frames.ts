import type { AgentFrame, FrameErrorCode, Json, ServerFrame } from '@keyway/sdk/protocol'
import { HUB_MAX_FRAME_BYTES } from '@keyway/sdk/protocol'

/** How the limit is said. */
export const MAX_FRAME_SIZE = `${HUB_MAX_FRAME_BYTES / 1024} KiB`
/** Of one message, whole. What is larger closes with 1009, which ws does by itself. */
export const FRAME_LIMITS = { maxPayload: HUB_MAX_FRAME_BYTES, maxFragments: 1024 }
/** Bounds of the fields, in characters. */
export const MAX_FRAME_ID_LENGTH = 128
export const MAX_TOKEN_LENGTH = 8192
const MAX_TARGET_LENGTH = 64

export type ReadFrame =
  | { outcome: 'frame'; frame: AgentFrame }
  | { outcome: 'error'; code: FrameErrorCode; detail: string; id?: string }
  /** Not one JSON object in one text message: closes with 4400. */
  | { outcome: 'bad_message' }

/** What an agent said. Never throws, whatever the bytes are. */
export function readFrame(data: Buffer, isBinary: boolean): ReadFrame {
  const frame = isBinary ? null : parseObject(data)
  if (!frame) return { outcome: 'bad_message' }
  switch (frame.type) {
    case 'ping':
      return { outcome: 'frame', frame: { type: 'ping' } }
    case 'token':
      return readToken(frame)
    case 'send':
      return readSend(frame)
    default:
      return {
        outcome: 'error',
        code: typeof frame.type === 'string' ? 'unknown_type' : 'invalid_frame',
        detail: '`type` must be one of "ping", "token", "send".',
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
  return { outcome: 'frame', frame: { type: 'send', id, to, data: frame.data as Json } }
}

function idOf({ id }: Record<string, unknown>): { id?: string } {
  return typeof id === 'string' && id !== '' && id.length <= MAX_FRAME_ID_LENGTH ? { id } : {}
}

function invalid(detail: string, id?: string): ReadFrame {
  return { outcome: 'error', code: 'invalid_frame', detail, ...(id === undefined ? {} : { id }) }
}

/**
 * A `message` frame as bytes, made once for all who get it; null when it would pass the limit of a frame, or is
 * nested deeper than can be written.
 */
export function encodeMessage(
  message: Omit<Extract<ServerFrame, { type: 'message' }>, 'type'>,
): Buffer | null {
  try {
    const { id, from, from_key_id, data } = message
    const bytes = Buffer.from(JSON.stringify({ type: 'message', id, from, from_key_id, data }))
    return bytes.length <= HUB_MAX_FRAME_BYTES ? bytes : null
  } catch {
    return null
  }
}
