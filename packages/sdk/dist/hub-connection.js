import { HUB_BEARER_PREFIX, HUB_PROTOCOL } from './protocol.js';
/** After this much silence the agent sends a ping. */
const SILENCE_BEFORE_PING_MS = 25_000;
/** If no frame follows a ping within this time, the connection counts as dead, even if TCP reports no error. */
const PONG_DEADLINE_MS = 10_000;
const READY_STATE_OPEN = 1;
const NORMAL_CLOSURE = 1000;
const ABNORMAL_CLOSURE = 1006;
/**
 * Close code of an abandoned socket, whose connection the agent may resume: the hub ends a connection for good only
 * after 1000 or a close without a code.
 */
const ABANDONED = 4000;
/** One WebSocket to the hub, with detection of dead connections. Does not reconnect; the agent dials again. */
export class HubConnection {
    #socket;
    #options;
    #lastReceivedAt;
    #ended = false;
    #unansweredPings = 0;
    #cancelSilenceTimer = () => { };
    constructor(options) {
        this.#options = options;
        this.#lastReceivedAt = options.clock.now();
        // The token is sent as a subprotocol, since only some platforms let clients set headers.
        const offeredProtocols = [HUB_PROTOCOL, HUB_BEARER_PREFIX + options.token, ...options.offer];
        this.#socket = new options.WebSocket(options.url, offeredProtocols);
        this.#socket.onmessage = (event) => this.#received(event.data);
        this.#socket.onerror = () => { }; // `onclose` follows, with all details
        this.#socket.onclose = (event) => this.#end({ code: event.code, reason: event.reason });
    }
    get isOpen() {
        return this.#socket.readyState === READY_STATE_OPEN;
    }
    /** Whether a ping was sent that no pong has answered yet. */
    get awaitsPong() {
        return this.#unansweredPings > 0;
    }
    /** Sends a frame; false if the socket is not open. */
    send(frame) {
        if (this.#ended || this.#socket.readyState !== READY_STATE_OPEN)
            return false;
        try {
            this.#socket.send(JSON.stringify(frame));
            if (frame.type === 'ping')
                this.#unansweredPings++;
            return true;
        }
        catch {
            return false; // The socket has just closed; `onclose` follows.
        }
    }
    /**
     * Ends the connection; with the default code for good, with another one so that it can be resumed. Ignores the socket
     * from now on, since a dead one may take minutes to close. No further events are reported.
     */
    close(code = NORMAL_CLOSURE) {
        this.#ended = true;
        this.#cancelSilenceTimer();
        this.#socket.onmessage = null;
        this.#socket.onclose = null;
        try {
            this.#socket.close(code);
        }
        catch {
            // Some platforms throw while the socket is connecting.
        }
    }
    /** Closes the socket with a code after which another socket can resume the connection. */
    abandon() {
        this.close(ABANDONED);
    }
    #received(data) {
        if (this.#ended)
            return;
        this.#lastReceivedAt = this.#options.clock.now();
        const frame = parseFrame(data);
        if (!frame)
            return;
        if (frame.type === 'pong' && this.#unansweredPings > 0)
            this.#unansweredPings--;
        if (frame.type === 'ready') {
            this.#watchSilence();
            this.#options.onReady(this, frame);
        }
        else {
            this.#options.onFrame(this, frame);
        }
    }
    #watchSilence() {
        const { clock } = this.#options;
        const silentForMs = clock.now() - this.#lastReceivedAt;
        this.#cancelSilenceTimer();
        this.#cancelSilenceTimer = clock.after(SILENCE_BEFORE_PING_MS - silentForMs, () => {
            if (clock.now() - this.#lastReceivedAt < SILENCE_BEFORE_PING_MS)
                return this.#watchSilence();
            this.#pingAndAwaitAnswer();
        });
    }
    #pingAndAwaitAnswer() {
        const lastReceivedAt = this.#lastReceivedAt;
        this.send({ type: 'ping' });
        this.#cancelSilenceTimer = this.#options.clock.after(PONG_DEADLINE_MS, () => {
            if (this.#lastReceivedAt !== lastReceivedAt)
                return this.#watchSilence();
            this.abandon();
            this.#options.onClosed(this, { code: ABNORMAL_CLOSURE, reason: 'no answer to a ping' });
        });
    }
    #end(close) {
        if (this.#ended)
            return;
        this.#ended = true;
        this.#cancelSilenceTimer();
        this.#options.onClosed(this, close);
    }
}
/**
 * Parses a frame; undefined if it is invalid. Frames of unknown types are returned, and their receivers ignore them.
 */
function parseFrame(data) {
    if (typeof data !== 'string')
        return undefined;
    try {
        const frame = JSON.parse(data);
        return typeof frame === 'object' && typeof frame?.type === 'string' ? frame : undefined;
    }
    catch {
        return undefined;
    }
}
export function readyEvent(frame) {
    return {
        connectionId: frame.connection_id,
        agentId: frame.agent_id,
        keyId: frame.key_id,
        keyName: frame.key_name,
        scopes: frame.scopes,
        expiresIn: frame.expires_in,
        resumed: frame.resumed === true,
    };
}
