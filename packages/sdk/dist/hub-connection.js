import { HUB_BEARER_PREFIX, HUB_PROTOCOL } from './protocol.js';
/** After this much silence the agent asks whether the other side still lives. */
const SILENCE_BEFORE_PING_MS = 25_000;
/** A ping that stays without any frame for this long means that the line is dead, whatever TCP believes. */
const PONG_DEADLINE_MS = 10_000;
const OPEN = 1;
const ABNORMAL = 1006;
/** One WebSocket to the hub: frames in, frames out, and a watch on silence. Never comes back; the agent dials anew. */
export class HubConnection {
    #socket;
    #options;
    #heardAt;
    #over = false;
    #cancelWatch = () => { };
    constructor(options) {
        this.#options = options;
        this.#heardAt = options.clock.now();
        // As a subprotocol on every platform: only some let a client set headers, and all let it offer protocols.
        this.#socket = new options.WebSocket(options.url, [HUB_PROTOCOL, HUB_BEARER_PREFIX + options.token]);
        this.#socket.onmessage = (event) => this.#heard(event.data);
        this.#socket.onerror = () => { }; // a close event follows and says all there is to know
        this.#socket.onclose = (event) => this.#end({ code: event.code, reason: event.reason });
    }
    /** Whether the handshake was answered and the socket is still open. */
    get isOpen() {
        return this.#socket.readyState === OPEN;
    }
    /** Hands a frame to the socket; false when it can take none. */
    send(frame) {
        if (this.#over || this.#socket.readyState !== OPEN)
            return false;
        try {
            this.#socket.send(JSON.stringify(frame));
            return true;
        }
        catch {
            return false; // it closed this very moment; `onclose` tells
        }
    }
    /** Lets go at once: a dead line may take minutes to finish a closing handshake. Nothing is reported any more. */
    close() {
        this.#over = true;
        this.#cancelWatch();
        this.#socket.onmessage = null;
        this.#socket.onclose = null;
        try {
            this.#socket.close(1000);
        }
        catch {
            // not yet connected on a platform that minds
        }
    }
    #heard(data) {
        if (this.#over)
            return;
        this.#heardAt = this.#options.clock.now();
        const frame = parseFrame(data);
        if (!frame)
            return;
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
        const quietFor = clock.now() - this.#heardAt;
        this.#cancelWatch();
        this.#cancelWatch = clock.after(SILENCE_BEFORE_PING_MS - quietFor, () => {
            if (clock.now() - this.#heardAt < SILENCE_BEFORE_PING_MS)
                return this.#watchSilence();
            this.#ask();
        });
    }
    #ask() {
        const heardBefore = this.#heardAt;
        this.send({ type: 'ping' });
        this.#cancelWatch = this.#options.clock.after(PONG_DEADLINE_MS, () => {
            if (this.#heardAt !== heardBefore)
                return this.#watchSilence();
            this.close();
            this.#options.onClosed(this, { code: ABNORMAL, reason: 'no answer to a ping' });
        });
    }
    #end(closed) {
        if (this.#over)
            return;
        this.#over = true;
        this.#cancelWatch();
        this.#options.onClosed(this, closed);
    }
}
/** Frames that a later server may add are skipped, and so is anything that is no frame. */
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
