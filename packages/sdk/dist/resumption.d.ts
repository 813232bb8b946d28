import type { SdkClock } from './clock.js';
import type { Handover, MessageFrame } from './handover.js';
import type { HubConnection, ReadyFrame } from './hub-connection.js';
/** A connection of the hub's protocol: one socket after the other, as long as it is resumed. */
export interface HubSession {
    connectionId: string;
    /** Absent where the hub cannot resume. */
    resumeToken: string | undefined;
    resumeSeconds: number;
    /** The number of the last message that arrived. */
    lastSeq: number;
    /** When its socket was lost; undefined while it has one. */
    lostAt: number | undefined;
    /** Whether its token was offered to the hub, which may have used it. */
    isOffered: boolean;
}
/** Resumes the agent's connection: what to offer, and which messages have arrived already. */
export declare class Resumption {
    #private;
    constructor(clock: SdkClock, handover: Handover);
    /** The subprotocols by which a new socket asks to resume the connection; none when it cannot be any more. */
    offer(): string[];
    /** A socket is ready. Returns its session, and the previous connection if that was not resumed. */
    ready(connection: HubConnection, frame: ReadyFrame): {
        session: HubSession;
        missed: string | undefined;
    };
    lost(connection: HubConnection): void;
    /** Whether this agent itself may have caused the close `resumed_elsewhere` of its connection. */
    isOwnDoing(connection: HubConnection): boolean;
    /** The session of a socket; the socket itself before `ready`. */
    of(connection: HubConnection): object;
    /** Passes a message on, unless it has arrived before. */
    take(connection: HubConnection, frame: MessageFrame): void;
}
