import type { SdkClock } from './clock.js';
import type { HubConnection } from './hub-connection.js';
/** The open connections to nodes that are shutting down. */
export declare class Draining {
    #private;
    constructor(clock: SdkClock);
    /**
     * @param onOverdue called when the node has not closed the connection in time
     * @returns milliseconds until the node closes the connection; undefined if `begin` was called for it before
     */
    begin(connection: HubConnection, closeInSeconds: number, onOverdue: () => void): number | undefined;
    ended(connection: HubConnection): void;
    closeAll(): void;
}
