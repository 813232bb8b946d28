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
     * Called when a connection received a pong. Ends the handover from it with the pong that answers the handover's ping,
     * the last of its pings: then no earlier message can arrive any more.
     */
    pongArrived(connection: HubConnection): void;
    /**
     * Called when a connection was closed: ends the handover from it or to it. After the close of the old connection no
     * earlier message can arrive any more; after that of the new one no further message is buffered.
     */
    closed(connection: HubConnection): void;
    /** Ends the handover, and delivers the buffered messages. */
    end(): void;
}
