import type { SdkClock } from './clock.js';
import type { HubConnection } from './hub-connection.js';
/** The open connections to nodes that are shutting down. */
export declare class DrainingConnections {
    #private;
    constructor(clock: SdkClock);
    /**
     * @param onOverdue called when the node has not closed the connection in time
     * @returns milliseconds until the node closes the connection; undefined if it was added before
     */
    add(connection: HubConnection, closeInSeconds: number, onOverdue: () => void): number | undefined;
    remove(connection: HubConnection): void;
    closeAll(): void;
}
