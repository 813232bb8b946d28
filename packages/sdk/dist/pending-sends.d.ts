import type { SdkClock } from './clock.js';
import { KeywayError } from './errors.js';
import type { HubConnection } from './hub-connection.js';
import { type AgentFrame, type FrameErrorCode } from './protocol.js';
/** Maximum number of unacknowledged sends; more are refused at once. */
export declare const PENDING_MAX_MESSAGES = 256;
export declare const PENDING_MAX_BYTES: number;
/** The hub's acknowledgement of a message. */
export interface Delivery {
    /** Number of open connections to which the message was written. */
    delivered: number;
    /**
     * Number of broken connections that get the message if they resume in time; not included in `delivered`. Absent if
     * the hub cannot resume connections.
     */
    held?: number;
}
export type OutgoingMessage = Omit<SendFrame, 'type'>;
type SendFrame = Extract<AgentFrame, {
    type: 'send';
}>;
/** Queue of unacknowledged sends, in order. */
export declare class PendingSends {
    #private;
    constructor(clock: SdkClock);
    /**
     * Resolves when the hub acknowledges the message; rejects if the hub refuses it, the message is too large, the signal
     * aborts, the queue is full, or the agent stops.
     */
    add(message: OutgoingMessage, signal?: AbortSignal): Promise<Delivery>;
    /** Sends over this connection from now on, with sequence numbers if it belongs to a hub session. */
    sendOver(connection: HubConnection, session: object | undefined): void;
    /** Sends the unacknowledged messages of a lost connection again, since they may or may not have arrived. */
    lost(connection: HubConnection): void;
    /** If the hub refused a send temporarily, repeats it after a pause, in which nothing is sent; else rejects it. */
    failed(id: string, code: FrameErrorCode, detail: string): void;
    acknowledge(id: string, delivered: number, held?: number): void;
    rejectSend(id: string, error: unknown): void;
    rejectAll(error: KeywayError): void;
}
export {};
