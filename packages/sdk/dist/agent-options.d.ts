import type { ProvidedToken } from './agent-token-source.js';
import type { KeywayError } from './errors.js';
import type { WebSocketConstructor } from './hub-connection.js';
import type { NetworkCause } from './network-cause.js';
import type { AgentConnectionObject, Json } from './protocol.js';
export interface AgentOptions {
    /** The service's public URL. Default: the environment variable `KEYWAY_URL`. */
    url?: string | undefined;
    /** `svc_…`. Default: the environment variable `KEYWAY_API_KEY`. Keep keys out of browsers: use `getToken` there. */
    apiKey?: string | undefined;
    /**
     * Instead of `apiKey`: asks your own backend for a token. Return the exchange's response unchanged. Throw the
     * `KeywayError` of a refusal to stop the agent; after any other error it retries.
     */
    getToken?: ((signal: AbortSignal) => Promise<ProvidedToken> | ProvidedToken) | undefined;
    /** The WebSocket class to use. Default: the platform's, or on Node from 20.16 on the one in this package. */
    WebSocket?: WebSocketConstructor | undefined;
    /** Closes the agent when it aborts. */
    signal?: AbortSignal | undefined;
    fetch?: typeof fetch | undefined;
}
export interface SendOptions {
    signal?: AbortSignal | undefined;
    /** The id of the message that this one answers. */
    replyTo?: string | undefined;
}
/** The hub accepted the connection. */
export interface AgentReady {
    connectionId: string;
    agentId: string;
    keyId: string;
    keyName: string | null;
    /** Empty means unrestricted. */
    scopes: string[];
    /** Seconds. */
    expiresIn: number;
    /** Whether the previous connection was resumed; all messages that it missed then follow. */
    resumed: boolean;
}
export interface AgentMessage {
    id: string;
    /** The sender's connection, or `"api"`. */
    from: string;
    fromKeyId: string | null;
    data: Json;
    /** The id of the message that this one answers. */
    replyTo?: string;
}
/** A request of another agent of the same owner; see `Agent.onRequest`. */
export interface AgentRequest {
    id: string;
    /** The requesting connection, or `"api"`. */
    from: string;
    fromKeyId: string | null;
    data: Json;
}
/** Returns the answer to a request, or throws; a `KeywayError` `request_failed` tells the requester its `reason`. */
export type RequestHandler = (request: AgentRequest) => Json | undefined | Promise<Json | undefined>;
/** A connection ended, or an attempt to connect failed. */
export interface AgentDisconnected {
    /** WebSocket close code; 1006 when the connection was lost or never established. */
    code: number;
    reason: string;
    willReconnect: boolean;
    /** Milliseconds until the next attempt. */
    retryInMs?: number;
    /**
     * Why the service could not be reached: its name does not resolve, it refuses connections, its certificate is
     * invalid, …
     */
    cause?: NetworkCause;
    /** The error of the attempt; its message says what to do. */
    error?: KeywayError;
}
/** A change of the owner's connections; see `Agent.watch`. */
export type PresenceEvent = 
/** All open connections. Comes first, and after each reconnection, since changes may have been missed. */
{
    type: 'presence';
    connections: AgentConnectionObject[];
}
/** A connection was opened, or its agent now uses another key. */
 | {
    type: 'joined';
    connection: AgentConnectionObject;
} | {
    type: 'left';
    connectionId: string;
    reason: string;
};
export interface AgentEvents {
    ready: AgentReady;
    message: AgentMessage;
    disconnected: AgentDisconnected;
    /**
     * The last connection could not be resumed: messages to it may be lost. `ready` of the new one came just before.
     */
    gap: {
        connectionId: string;
        previousConnectionId: string;
    };
    /** The token was renewed in place; `expiresIn` in seconds. */
    renewed: {
        expiresIn: number;
    };
    /** The last event. Without `error` the cause was `close()` or the signal; otherwise the message says what to do. */
    stopped: {
        error?: KeywayError;
    };
}
