import { KeywayError } from './errors.js';
import { HUB_MAX_FRAME_BYTES } from './protocol.js';
/** Maximum number of unacknowledged sends; more are refused at once. */
export const PENDING_MAX_MESSAGES = 256;
export const PENDING_MAX_BYTES = 1024 * 1024;
/** Send window: resending a full queue after a reconnection must not exceed the hub's frame limit. */
const WINDOW = 64;
/** Bytes that a sequence number adds to a frame. */
const SEQ_BYTES = 24;
/** Pause after the hub answered `rate_limited`. */
const RATE_LIMIT_PAUSE_MS = 1_000;
/** Queue of unacknowledged sends, in order. */
export class PendingSends {
    #clock;
    #pending = new Map();
    #bytes = 0;
    #connection;
    /** The session that numbers sends; undefined if the hub does not support numbers. */
    #session;
    #lastSeq = 0;
    #cancelPause;
    constructor(clock) {
        this.#clock = clock;
    }
    /** Resolves when the hub acknowledges it; rejects if it is refused, abandoned or beyond the limit. */
    add(message, signal) {
        const { id } = message;
        const frame = { type: 'send', ...message };
        const bytes = new TextEncoder().encode(JSON.stringify(frame)).length + SEQ_BYTES;
        if (bytes > HUB_MAX_FRAME_BYTES) {
            const message = `The frame has ${bytes} bytes; the hub takes ${HUB_MAX_FRAME_BYTES}. Split the data.`;
            return Promise.reject(new KeywayError('too_large', message));
        }
        if (this.#pending.size >= PENDING_MAX_MESSAGES || this.#bytes + bytes > PENDING_MAX_BYTES) {
            const message = `${this.#pending.size} messages wait for their acknowledgement. Await send() before sending more.`;
            return Promise.reject(new KeywayError('queue_full', message, { retryable: true }));
        }
        return new Promise((resolve, reject) => {
            const abort = () => this.#abort(id, signal?.reason);
            const settle = () => signal?.removeEventListener('abort', abort);
            const state = { sentOn: undefined, numberedIn: undefined, isAborted: false };
            this.#pending.set(id, { frame, bytes, ...state, settle, resolve, reject });
            this.#bytes += bytes;
            if (signal?.aborted)
                abort();
            else
                signal?.addEventListener('abort', abort, { once: true });
            this.#flush();
        });
    }
    /** Sends over this connection from now on. With a session, sends get sequence numbers of that session. */
    use(connection, session) {
        this.#connection = connection;
        if (session && session === this.#session)
            this.#sendAllAgain();
        else
            this.#lastSeq = 0;
        this.#session = session;
        this.#flush();
    }
    /** The connection was lost: its unacknowledged messages may or may not have arrived, and are sent again. */
    lost(connection) {
        if (this.#connection === connection)
            this.#connection = undefined;
        for (const pending of this.#pending.values()) {
            if (pending.sentOn === connection)
                pending.sentOn = undefined;
        }
        this.#flush();
    }
    /**
     * The hub refused this send. If the refusal is temporary, it is sent again after a pause, and nothing else before it.
     */
    failed(id, code, detail) {
        const isOurs = code === 'unknown_type' || code === 'invalid_frame';
        if (code === 'rate_limited' || code === 'out_of_order')
            this.#postpone(id);
        else
            this.refuse(id, new KeywayError(isOurs ? 'refused' : code, detail));
    }
    #postpone(id) {
        const pending = this.#pending.get(id);
        if (pending)
            pending.sentOn = undefined;
        this.#cancelPause ??= this.#clock.after(RATE_LIMIT_PAUSE_MS, () => {
            this.#cancelPause = undefined;
            this.#flush();
        });
    }
    acknowledge(id, delivered, held) {
        this.#take(id)?.resolve({ delivered, ...(held === undefined ? {} : { held }) });
        this.#flush();
    }
    refuse(id, error) {
        this.#take(id)?.reject(error);
        this.#flush();
    }
    /** A send with a sequence number stays queued: it may have been accepted, and a gap would block later ones. */
    #abort(id, reason) {
        const pending = this.#pending.get(id);
        if (pending && this.#session && pending.numberedIn === this.#session) {
            pending.isAborted = true;
            pending.reject(reason);
        }
        else
            this.refuse(id, reason);
    }
    /**
     * Sends everything again after the session was resumed; the hub recognises by the sequence numbers what it has accepted.
     */
    #sendAllAgain() {
        for (const pending of this.#pending.values())
            pending.sentOn = undefined;
    }
    refuseAll(error) {
        this.#cancelPause?.();
        this.#connection = undefined;
        for (const id of [...this.#pending.keys()])
            this.refuse(id, error);
    }
    /**
     * Sends queued messages as far as the window allows. Messages in flight on the previous connection block later ones
     * until they are acknowledged or lost, since order is not preserved across two nodes.
     */
    #flush() {
        const connection = this.#connection;
        if (!connection || this.#cancelPause)
            return;
        let underWay = 0;
        for (const [id, pending] of this.#pending) {
            if (pending.isAborted && pending.numberedIn !== this.#session) {
                this.#take(id);
                continue;
            }
            if (underWay++ >= WINDOW)
                return;
            if (pending.sentOn === connection)
                continue;
            if (pending.sentOn)
                return;
            this.#number(pending);
            if (!connection.send(pending.frame))
                return;
            pending.sentOn = connection;
        }
    }
    /** A message keeps its sequence number for the whole session, so that the hub accepts it once. */
    #number(pending) {
        if (pending.numberedIn === this.#session)
            return;
        pending.numberedIn = this.#session;
        const { seq, ...frame } = pending.frame;
        pending.frame = this.#session ? { ...frame, seq: ++this.#lastSeq } : frame;
    }
    #take(id) {
        const pending = this.#pending.get(id);
        if (!pending)
            return undefined;
        this.#pending.delete(id);
        this.#bytes -= pending.bytes;
        pending.settle();
        return pending;
    }
}
