import type { SdkClock } from './clock.js';
import type { HubConnection } from './hub-connection.js';
import type { ServerFrame } from './protocol.js';
export type MessageFrame = Extract<ServerFrame, {
    type: 'message';
}>;
/**
 * Preserves message order while an agent moves to a new connection. Messages on the old connection may arrive after
 * later ones on the new connection; so the old connection is pinged, and messages of the new one are buffered until the
 * pong arrives.
 */
export declare class Handover {
    #private;
    constructor(clock: SdkClock, deliver: (connection: HubConnection, frame: MessageFrame) => void);
    begin(from: HubConnection, to: HubConnection): void;
    arrived(connection: HubConnection, frame: MessageFrame): void;
    /**
     * Called when a connection received a pong or is closed. From the old connection no message can then come before
     * those of the new one; if the new connection is closed, there is nothing to wait for. Ends the handover in both
     * cases.
     */
    caughtUp(connection: HubConnection): void;
    /** Ends the handover, and delivers the buffered messages. */
    end(): void;
}
