import type { PresenceEvent } from './agent-options.js';
import type { SdkClock } from './clock.js';
import { KeywayError } from './errors.js';
import type { HubConnection } from './hub-connection.js';
import { MessageStream } from './message-stream.js';
import type { ServerFrame } from './protocol.js';
/** The agent's watch of the owner's connections. All iterators share one watch at the hub. */
export declare class Watching {
    #private;
    constructor(clock: SdkClock);
    /** Opens an iterator; `connection` is the agent's current one. */
    open(connection: HubConnection | undefined): MessageStream<PresenceEvent>;
    /** If there are iterators, sends `watch` over this connection, which the hub answers with a new list. */
    watchOver(connection: HubConnection): void;
    receive(connection: HubConnection, frame: ServerFrame): void;
    /**
     * If the error is about the watch, handles it and returns true: ends all iterators, or retries if rate limited.
     * Ignores it if the watch has moved to another connection.
     */
    handleError(connection: HubConnection, { id, code, detail }: Extract<ServerFrame, {
        type: 'error';
    }>): boolean;
    /** Ends all iterators, with the error if there is one. Returns whether there were any. */
    end(error: KeywayError | undefined): boolean;
}
