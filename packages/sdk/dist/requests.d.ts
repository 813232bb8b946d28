import type { SdkClock } from './clock.js';
import { KeywayError } from './errors.js';
import type { MessageFrame } from './handover.js';
import type { Delivery, OutgoingMessage } from './pending-sends.js';
import { type Json } from './protocol.js';
/** Maximum number of requests without an answer; more are refused at once. */
export declare const MAX_PENDING_REQUESTS = 1000;
export interface RequestOptions {
    /** Milliseconds until the request is rejected with `timeout`, at most a day; 30,000 unless given. */
    timeout?: number | undefined;
    /** Rejects the request with the signal's reason. */
    signal?: AbortSignal | undefined;
}
type Send = (message: OutgoingMessage, signal: AbortSignal) => Promise<Delivery>;
/** The requests of this agent that have no answer yet (docs/hub-protocol.md, section 3). */
export declare class Requests {
    #private;
    constructor(clock: SdkClock, send: Send);
    /**
     * Resolves with the first result. Rejects once every receiver answered with an error, at the timeout, when the signal
     * aborts, or if the request is refused or cannot be sent.
     */
    request(to: string, data: Json, { timeout, signal }: RequestOptions): Promise<Json>;
    /**
     * Handles a message that is an answer, and returns whether it is; drops an answer that no request of this agent
     * awaits.
     */
    handleAnswer({ from, reply_to, data }: MessageFrame): boolean;
    rejectAll(error: KeywayError): void;
}
export {};
