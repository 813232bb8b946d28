import type { ProvidedToken } from './agent-token-source.js';
import type { KeywayError } from './errors.js';
import type { WebSocketConstructor } from './hub-connection.js';
import type { Json } from './protocol.js';
export interface AgentOptions {
    /** The service's public URL. Default: the environment variable `KEYWAY_URL`. */
    url?: string;
    /** `svc_…`. Default: the environment variable `KEYWAY_API_KEY`. Keep keys out of browsers: use `getToken` there. */
    apiKey?: string;
    /**
     * Instead of `apiKey`: asks your own backend for a token. Return the exchange's answer as it is. Throw a
     * `KeywayError` of a refusal to stop the agent; any other error is tried again.
     */
    getToken?: (signal: AbortSignal) => Promise<ProvidedToken> | ProvidedToken;
    /** Where the platform has none (Node 20): `import { WebSocket } from 'ws'`. */
    WebSocket?: WebSocketConstructor;
    /** Closes the agent when it aborts. */
    signal?: AbortSignal;
    fetch?: typeof fetch;
}
/** The hub took the connection. */
export interface AgentReady {
    connectionId: string;
    agentId: string;
    keyId: string;
    keyName: string | null;
    /** Empty means unrestricted. */
    scopes: string[];
    /** Seconds. */
    expiresIn: number;
}
export interface AgentMessage {
    id: string;
    /** The sender's connection, or `"api"`. */
    from: string;
    fromKeyId: string | null;
    data: Json;
}
/** A connection ended, or an attempt to make one failed. */
export interface AgentDisconnected {
    /** WebSocket close code; 1006 when the line broke or there was none. */
    code: number;
    reason: string;
    willReconnect: boolean;
    /** Milliseconds until the next attempt. */
    retryInMs?: number;
}
export interface AgentEvents {
    ready: AgentReady;
    message: AgentMessage;
    disconnected: AgentDisconnected;
    /** The token was renewed in place; `expiresIn` in seconds. */
    renewed: {
        expiresIn: number;
    };
    /** The last event. Without `error` it was `close()` or the signal; with it, the message says what to do. */
    stopped: {
        error?: KeywayError;
    };
}
