import type { SdkClock } from './clock.js';
import type { Handover, MessageFrame } from './handover.js';
import type { HubConnection, ReadyFrame } from './hub-connection.js';
/** A logical connection to the hub: it continues over successive sockets, as long as it is resumed. */
export interface HubSession {
    connectionId: string;
    /** Undefined if the hub cannot resume connections. */
    resumeToken: string | undefined;
    resumeSeconds: number;
    /** The sequence number of the last message that arrived. */
    lastSeq: number;
    /** When the session's socket was lost; undefined while it has one. */
    lostAt: number | undefined;
    /** Whether the resume token was offered to the hub, which may then have resumed the session. */
    isOffered: boolean;
}
/** Resumes the agent's connection over new sockets, and drops messages that arrive a second time. */
export declare class Resumption {
    #private;
    constructor(clock: SdkClock, handover: Handover);
    /** The subprotocols by which a new socket asks to resume the connection; none if there is none to resume. */
    offer(): string[];
    /**
     * Assigns a ready socket to its session, and returns that session. `unresumed`: the id of the previous connection, if
     * that could be resumed and the hub began a new one instead.
     */
    ready(connection: HubConnection, frame: ReadyFrame): {
        session: HubSession;
        unresumed: string | undefined;
    };
    lost(connection: HubConnection): void;
    /** Whether this agent itself may have resumed the connection that closed with `resumed_elsewhere`. */
    mayHaveResumed(connection: HubConnection): boolean;
    /** The session of a socket; the socket itself before `ready`. */
    sessionOf(connection: HubConnection): object;
    /** Passes a message, unless it has arrived before, to the `Handover`, which delivers it in order. */
    receive(connection: HubConnection, frame: MessageFrame): void;
}
