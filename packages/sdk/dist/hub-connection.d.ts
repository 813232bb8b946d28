import type { AgentReady } from './agent-options.js';
import type { SdkClock } from './clock.js';
import { type AgentFrame, type ServerFrame } from './protocol.js';
/** The part of the standard WebSocket interface that is used; `ws` and native ones implement it. */
export interface WebSocketLike {
    readonly readyState: number;
    onopen: ((event: never) => void) | null;
    onmessage: ((event: never) => void) | null;
    onerror: ((event: never) => void) | null;
    onclose: ((event: never) => void) | null;
    send(data: string): void;
    close(code?: number, reason?: string): void;
}
export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike;
/** The close code and reason of a connection; `1006` if there was no close frame. */
export interface HubClose {
    code: number;
    reason: string;
}
export type ReadyFrame = Extract<ServerFrame, {
    type: 'ready';
}>;
export interface HubConnectionOptions {
    WebSocket: WebSocketConstructor;
    url: string;
    token: string;
    /** Subprotocols to offer besides HUB_PROTOCOL and the token. */
    offer: string[];
    clock: SdkClock;
    onReady(connection: HubConnection, frame: ReadyFrame): void;
    onFrame(connection: HubConnection, frame: ServerFrame): void;
    /** Called once, when the socket has closed or stays silent; never after `close` or `abandon`. */
    onClosed(connection: HubConnection, close: HubClose): void;
}
/** One WebSocket to the hub, with detection of dead connections. Does not reconnect; the agent dials again. */
export declare class HubConnection {
    #private;
    constructor(options: HubConnectionOptions);
    get isOpen(): boolean;
    /** Whether a ping was sent that no pong has answered yet. */
    get awaitsPong(): boolean;
    /** Sends a frame; false if the socket is not open. */
    send(frame: AgentFrame): boolean;
    /**
     * Ends the connection; with the default code for good, with another one so that it can be resumed. Ignores the socket
     * from now on, since a dead one may take minutes to close. No further events are reported.
     */
    close(code?: number): void;
    /** Closes the socket with a code after which another socket can resume the connection. */
    abandon(): void;
}
export declare function readyEvent(frame: ReadyFrame): AgentReady;
