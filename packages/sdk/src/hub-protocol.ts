/** The subprotocol that a hub client offers and the hub selects. */
export const HUB_PROTOCOL = 'keyway.hub.v1'
/** A browser cannot set headers on a WebSocket: it offers `bearer.<token>` as a second subprotocol. */
export const HUB_BEARER_PREFIX = 'bearer.'
/** Largest text frame either side may send, in bytes. */
export const HUB_MAX_FRAME_BYTES = 64 * 1024

/**
 * A message whose id begins so is a request: its receivers send one answer, with `reply_to` and an `Answer` as data.
 */
export const REQUEST_ID_PREFIX = 'request.'

/** JSON as it travels in `data`. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** The data of an answer to a request. `code` is `no_handler`, `busy`, `failed` or one that the responder chose. */
export type Answer = { result: Json } | { error: { code: string; message: string } }

export type FrameErrorCode =
  | 'unknown_type'
  | 'invalid_frame'
  | 'invalid_token'
  | 'insufficient_scope'
  | 'rate_limited'

/** Frames of agents. */
export type AgentFrame =
  | { type: 'ping' }
  | { type: 'token'; token: string }
  | { type: 'send'; id: string; to: string; data: Json; reply_to?: string }

/** Frames of the server. */
export type ServerFrame =
  | {
      type: 'ready'
      connection_id: string
      agent_id: string
      key_id: string
      key_name: string | null
      scopes: string[]
      /** RFC 3339. */
      expires_at: string
      /** Seconds. */
      expires_in: number
      heartbeat_seconds: number
    }
  | { type: 'pong' }
  | { type: 'token_accepted'; expires_at: string; expires_in: number }
  | { type: 'token_expiring'; expires_at: string; expires_in: number }
  | { type: 'message'; id: string; from: string; from_key_id: string | null; data: Json; reply_to?: string }
  | { type: 'sent'; id: string; delivered: number }
  | { type: 'draining'; close_in_seconds: number }
  | { type: 'error'; code: FrameErrorCode; detail: string; id?: string }
