import type { SdkClock } from './clock.js';
import { KeywayError } from './errors.js';
import type { HubConnection } from './hub-connection.js';
import { type Json } from './protocol.js';
/** What waits for a connection or an acknowledgement at most; more is refused at once. */
export declare const PENDING_MAX_MESSAGES = 256;
export declare const PENDING_MAX_BYTES: number;
/** The hub's acknowledgement: written to so many open connections. */
export interface Delivery {
    delivered: number;
}
/** Sends that are not acknowledged yet, in their order, on their way over the connection in use. */
export declare class PendingSends {
    #private;
    constructor(clock: SdkClock);
    /** Resolves when the hub acknowledged it; rejects when it is refused, given up or over the bound. */
    add(id: string, to: string, data: Json, signal?: AbortSignal): Promise<Delivery>;
    /** From now on over this connection. */
    use(connection: HubConnection): void;
    /** That connection is gone: what it had not acknowledged may or may not have arrived, and is sent again. */
    lost(connection: HubConnection): void;
    /** The hub asked for patience with this one: it is sent again, and nothing before it, a second later. */
    postpone(id: string): void;
    acknowledge(id: string, delivered: number): void;
    refuse(id: string, error: unknown): void;
    refuseAll(error: KeywayError): void;
}
