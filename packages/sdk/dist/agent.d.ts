import type { AgentEvents, AgentMessage, AgentOptions, AgentReady, PresenceEvent, RequestHandler, SendOptions } from './agent-options.js';
import { Emitter } from './emitter.js';
import { type Delivery } from './pending-sends.js';
import type { Json, Sendable } from './protocol.js';
import { type RequestOptions } from './requests.js';
/**
 * An agent that stays connected as long as its key is active: it exchanges the key for a short-lived token, connects,
 * renews the token in place, reconnects after failures, and stops permanently when the service refuses the key.
 *
 *     const agent = new Agent({ url: 'https://keyway.example.com', apiKey: process.env.KEYWAY_API_KEY })
 *     agent.on('message', ({ from, data }) => console.log(from, data))
 *     agent.on('stopped', ({ error }) => error && console.error(error.message))
 */
export declare class Agent extends Emitter<AgentEvents> implements AsyncIterable<AgentMessage> {
    #private;
    /** Starts at once; listeners added in the same tick receive all events. */
    constructor(options?: AgentOptions);
    /** Whether the agent is connected now. */
    get connected(): boolean;
    /** The content of the `ready` frame; undefined while not connected. */
    get connection(): AgentReady | undefined;
    /**
     * Sends `data` to other connections of the same owner: one connection, all of one key, or `"all"`. Resolves with the
     * number of open connections to which the hub has written it (`delivered`), and of broken connections for which the
     * hub stores it until they resume (`held`). At most 256 messages or 1 MiB may await their acknowledgement, also while
     * disconnected; further ones are rejected with `queue_full`. Messages arrive once and in order; after a `gap` a
     * message may arrive twice.
     */
    send<Value>(to: string, data: Sendable<Value>, { signal, replyTo }?: SendOptions): Promise<Delivery>;
    /**
     * Sends a request to one connection, to all of a key, or to `"all"`, and resolves with the first answer.
     *
     * @throws KeywayError `no_responders` when there is no receiver, or none of them answers requests;
     *   `request_failed` with `reason` when all refused or failed otherwise; `timeout`; `queue_full` beyond 1,000
     *   requests without an answer; `invalid_configuration` for an invalid timeout; the errors of `send`
     */
    request<Value>(to: string, data: Sendable<Value>, options?: RequestOptions): Promise<Json>;
    /**
     * Answers requests with what the handler returns, from now on; a second call replaces the handler. The handler is
     * called once for each request, and for at most 100 at a time: more are refused as `busy`. To send answers, the key
     * needs `agents:send`.
     */
    onRequest(handler: RequestHandler): this;
    /** Stops the agent. Unacknowledged messages and unanswered requests are rejected with `closed`. */
    close(): void;
    /**
     * All messages from now on, except requests and answers. Ends with `close`; throws when the service stops the agent,
     * or `queue_full` when more than 10,000 messages wait to be read.
     */
    [Symbol.asyncIterator](): AsyncIterableIterator<AgentMessage>;
    /**
     * Iterates over changes of the owner's connections on all nodes. The first event, and the first after each
     * reconnection, has all connections; the others have one that joined or left. Ends with `close`; throws when the key
     * lacks `agents:read`, the hub refuses the watch, or the service stops the agent, and `queue_full` when more than
     * 10,000 changes wait to be read.
     */
    watch(): AsyncIterableIterator<PresenceEvent>;
}
