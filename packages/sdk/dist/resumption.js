import { HUB_RESUME_PREFIX } from './protocol.js';
/** Resumes the agent's connection over new sockets, and drops messages that arrive a second time. */
export class Resumption {
    #clock;
    #handover;
    #current;
    #sessions = new WeakMap();
    constructor(clock, handover) {
        this.#clock = clock;
        this.#handover = handover;
    }
    /** The subprotocols by which a new socket asks to resume the connection; none if there is none to resume. */
    offer() {
        const session = this.#current;
        if (!session?.resumeToken || this.#isExpired(session))
            return [];
        session.isOffered = true;
        return [`${HUB_RESUME_PREFIX}${session.resumeToken}.${session.lastSeq}`];
    }
    /**
     * Assigns a ready socket to its session, and returns that session. `unresumed`: the id of the previous connection, if
     * that could be resumed and the hub began a new one instead.
     */
    ready(connection, frame) {
        const previous = this.#current;
        const isResumed = frame.resumed === true && previous !== undefined;
        const session = {
            connectionId: frame.connection_id,
            resumeToken: frame.resume_token,
            resumeSeconds: frame.resume_seconds ?? 0,
            lastSeq: 0,
            lostAt: undefined,
            isOffered: false,
        };
        // Keeps the object, so that references to the session stay valid.
        const current = isResumed ? Object.assign(previous, session, { lastSeq: previous.lastSeq }) : session;
        this.#sessions.set(connection, current);
        this.#current = current;
        return {
            session: current,
            unresumed: isResumed || !previous?.resumeToken ? undefined : previous.connectionId,
        };
    }
    lost(connection) {
        const session = this.#sessions.get(connection);
        if (session && session === this.#current)
            session.lostAt = this.#clock.now();
    }
    /** Whether this agent itself may have resumed the connection that closed with `resumed_elsewhere`. */
    mayHaveResumed(connection) {
        return this.#sessions.get(connection)?.isOffered === true;
    }
    /** The session of a socket; the socket itself before `ready`. */
    sessionOf(connection) {
        return this.#sessions.get(connection) ?? connection;
    }
    /** Passes a message, unless it has arrived before, to the `Handover`, which delivers it in order. */
    receive(connection, frame) {
        const session = this.#sessions.get(connection);
        const { seq } = frame;
        if (session && seq !== undefined) {
            if (seq <= session.lastSeq)
                return;
            session.lastSeq = seq;
        }
        this.#handover.arrived(connection, frame);
    }
    #isExpired({ lostAt, resumeSeconds }) {
        return lostAt !== undefined && this.#clock.now() - lostAt > resumeSeconds * 1000;
    }
}
