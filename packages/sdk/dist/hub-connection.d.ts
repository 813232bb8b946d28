import type { SdkClock } from './clock.js';
import { type AgentFrame, type ServerFrame } from './protocol.js';
/** The part of the standard WebSocket that is used; `ws` and every platform's own one fit. */
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
/** Why a connection is over: the close frame, or `1006` for a line that broke without one. */
export interface HubClosed {
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
    clock: SdkClock;
    onReady(connection: HubConnection, frame: ReadyFrame): void;
    onFrame(connection: HubConnection, frame: ServerFrame): void;
    /** Exactly once, unless `close` was called. */
    onClosed(connection: HubConnection, closed: HubClosed): void;
}
/** One WebSocket to the hub: frames in, frames out, and a watch on silence. Never comes back; the agent dials anew. */
export declare class HubConnection {
    #private;
    constructor(options: HubConnectionOptions);
    /** Whether the handshake was answered and the socket is still open. */
    get isOpen(): boolean;
    /** Hands a frame to the socket; false when it can take none. */
    send(frame: AgentFrame): boolean;
    /** Lets go at once: a dead line may take minutes to finish a closing handshake. Nothing is reported any more. */
    close(): void;
}
