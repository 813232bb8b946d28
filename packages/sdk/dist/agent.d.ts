import type { AgentEvents, AgentMessage, AgentOptions, AgentReady } from './agent-options.js';
import { Emitter } from './emitter.js';
import { type Delivery } from './pending-sends.js';
import type { Json } from './protocol.js';
/**
 * An agent that stays connected exactly as long as its key may: it exchanges the key for a short token, connects,
 * renews in place, comes back after every fault, and stops for good when it is told to.
 *
 *     const agent = new Agent({ url: 'https://keyway.example.com', apiKey: process.env.KEYWAY_API_KEY })
 *     agent.on('message', ({ from, data }) => agent.send(from, data))
 *     agent.on('stopped', ({ error }) => error && console.error(error.message))
 */
export declare class Agent extends Emitter<AgentEvents> implements AsyncIterable<AgentMessage> {
    #private;
    /** Starts at once; listeners that are added in the same tick hear everything. */
    constructor(options?: AgentOptions);
    /** Whether the hub can be reached through this agent now. */
    get connected(): boolean;
    /** What the hub said at `ready`; undefined while not connected. */
    get connection(): AgentReady | undefined;
    /**
     * Sends `data` to other connections of the same owner: one connection, all of one key, or `"all"`. Resolves when
     * the hub has written it to `delivered` open connections (0 when there is none). Waits through disconnections, up
     * to 256 messages or 1 MiB; what was not acknowledged when a line broke is sent again, so a receiver may see a
     * message twice (at least once).
     */
    send(to: string, data: Json, { signal }?: {
        signal?: AbortSignal;
    }): Promise<Delivery>;
    /** Ends the agent. What is not acknowledged by now is rejected with `closed`. */
    close(): void;
    /** Every message from now on; ends with `close`, throws when the agent is stopped for good. */
    [Symbol.asyncIterator](): AsyncIterableIterator<AgentMessage>;
}
