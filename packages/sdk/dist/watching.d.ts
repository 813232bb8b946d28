import type { PresenceEvent } from './agent-options.js';
import type { SdkClock } from './clock.js';
import { KeywayError } from './errors.js';
import type { HubConnection } from './hub-connection.js';
import { MessageStream } from './message-stream.js';
import type { ServerFrame } from './protocol.js';
/** One watch at the hub for all iterators of an agent. */
export declare class Watching {
    #private;
    constructor(clock: SdkClock);
    /** Opens an iterator; `connection` is the agent's current one. */
    open(connection: HubConnection | undefined): MessageStream<PresenceEvent>;
    /** Watches over this connection from now on, which starts with a new list. */
    use(connection: HubConnection): void;
    take(connection: HubConnection, frame: ServerFrame): void;
    /** Whether an error is about the watch: it ends all iterators, unless the hub only asks to wait. */
    refused(connection: HubConnection, { id, code, detail }: Extract<ServerFrame, {
        type: 'error';
    }>): boolean;
    /** Ends all iterators, with the error if there is one. Returns whether there were any. */
    end(error: KeywayError | undefined): boolean;
}
