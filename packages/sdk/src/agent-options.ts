import type { ProvidedToken } from './agent-token-source.ts'
import type { SdkClock } from './clock.ts'
import type { KeywayError } from './errors.ts'
import type { WebSocketConstructor } from './hub-connection.ts'
import type { NetworkCause } from './network-cause.ts'
import type { AgentConnectionObject, Json } from './protocol.ts'

export interface AgentOptions {
  /** The service's public URL. Default: the environment variable `KEYWAY_URL`. */
  url?: string | undefined
  /**
   * The API key (`svc_…`). Default: the environment variable `KEYWAY_API_KEY`. Keep keys out of browsers: use
   * `getToken` there.
   */
  apiKey?: string | undefined
  /**
   * Instead of `apiKey`: gets a token from your own backend, which exchanges the key. Return the response of
   * `POST /auth/agent-token` unchanged. A thrown `KeywayError` with the status 401 or 403, as from a refused exchange,
   * or with the code `invalid_request` stops the agent; after most other errors the agent retries.
   */
  getToken?: ((signal: AbortSignal) => Promise<ProvidedToken> | ProvidedToken) | undefined
  /**
   * The WebSocket class to use. Default: that of the platform; on Node 20.16 to 21, which has none, the one in this
   * package.
   */
  WebSocket?: WebSocketConstructor | undefined
  /** Closes the agent when it aborts. */
  signal?: AbortSignal | undefined
  fetch?: typeof fetch | undefined
  /** @internal For tests. */
  clock?: SdkClock | undefined
}

export interface SendOptions {
  signal?: AbortSignal | undefined
  /** The id of the message that this one answers. */
  replyTo?: string | undefined
}

/** The event `ready`: the hub accepted the connection. */
export interface AgentReady {
  connectionId: string
  agentId: string
  keyId: string
  keyName: string | null
  /** Empty means unrestricted. */
  scopes: string[]
  /** Seconds until the token expires. */
  expiresIn: number
  /** Whether the previous connection was resumed; all messages that it missed then follow. */
  resumed: boolean
}

export interface AgentMessage {
  id: string
  /** The id of the sender's connection, or `"api"` for a message sent by an HTTP call. */
  from: string
  /** The id of the sender's key; null for a message sent by an HTTP call. */
  fromKeyId: string | null
  data: Json
  /** The id of the message that this one answers. */
  replyTo?: string
}

/** A request from the same owner: from another connection or from the service; see `Agent.onRequest`. */
export interface AgentRequest {
  id: string
  /** Where the answer is sent: the id of the requesting connection, or `api.` and an id if the service asks. */
  from: string
  fromKeyId: string | null
  data: Json
}

/**
 * Returns the answer to a request, or throws. The `reason` of a thrown `KeywayError` with the code `request_failed` is
 * sent to the requester.
 */
export type RequestHandler = (request: AgentRequest) => Json | undefined | Promise<Json | undefined>

/**
 * The event `disconnected`: the connection ended, or an attempt to connect failed. Not emitted while another connection
 * is open, or for `close()`.
 */
export interface AgentDisconnected {
  /**
   * WebSocket close code; 1006 if the connection was lost or never opened, 1000 if the exchange was refused for good.
   */
  code: number
  reason: string
  willReconnect: boolean
  /** Milliseconds until the next attempt; absent if there will be none. */
  retryInMs?: number
  /**
   * Why the token exchange could not reach the service: its name does not resolve, it refuses connections, its
   * certificate is invalid, … Absent after other failures.
   */
  cause?: NetworkCause
  /** The error of a failed token exchange after which the agent retries; its message says what to do. */
  error?: KeywayError
}

/** A change of the owner's connections; see `Agent.watch`. */
export type PresenceEvent =
  /** All open connections. Comes first, and after each reconnection, since changes may have been missed. */
  | { type: 'presence'; connections: AgentConnectionObject[] }
  /** A connection is ready, or a listed one now uses another key, or its key has another name. */
  | { type: 'joined'; connection: AgentConnectionObject }
  | { type: 'left'; connectionId: string; reason: string }

export interface AgentEvents {
  ready: AgentReady
  message: AgentMessage
  disconnected: AgentDisconnected
  /**
   * The previous connection could not be resumed: messages to it may be lost. Emitted right after `ready` of the new
   * one.
   */
  gap: { connectionId: string; previousConnectionId: string }
  /** The token was renewed in place; `expiresIn` in seconds. */
  renewed: { expiresIn: number }
  /**
   * The last event. Without `error` the cause was `close()` or the signal; otherwise `error.message` says what to do.
   */
  stopped: { error?: KeywayError }
}
