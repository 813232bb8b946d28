import type { SdkClock } from './clock.js';
import type { HubConnection } from './hub-connection.js';
import type { ServerFrame } from './protocol.js';
export type MessageFrame = Extract<ServerFrame, {
    type: 'message';
}>;
/**
 * Keeps messages in their order while an agent moves from one connection to the next. What the old one has taken may
 * still be on its way when the new one brings what came after it; so the old one is asked for a pong, and what the new
 * one brings waits until it is there.
 */
export declare class Handover {
    #private;
    constructor(clock: SdkClock, deliver: (connection: HubConnection, frame: MessageFrame) => void);
    begin(from: HubConnection, to: HubConnection): void;
    arrived(connection: HubConnection, frame: MessageFrame): void;
    /** That connection has brought all that it had taken: it answered the ping, or it is over. */
    caughtUp(connection: HubConnection): void;
    /** What waits is given out. */
    end(): void;
}
