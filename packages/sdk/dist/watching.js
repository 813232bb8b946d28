import { KeywayError } from './errors.js';
import { MessageStream } from './message-stream.js';
/** The id of `watch` frames, by which their errors are recognised. */
const WATCH_ID = 'watch';
/** Pause after the hub answered `rate_limited`, in milliseconds. */
const RATE_LIMIT_PAUSE_MS = 10_000;
/** One watch at the hub for all iterators of an agent. */
export class Watching {
    #clock;
    #streams = new Set();
    #connections = new Map();
    /** The connection that sent `watch`; frames of others are ignored. */
    #on;
    /** The frames of an incomplete list; null after the last. */
    #list = [];
    #cancelRetry = () => { };
    constructor(clock) {
        this.#clock = clock;
    }
    /** Opens an iterator; `connection` is the agent's current one. */
    open(connection) {
        const stream = new MessageStream(ended => this.#close(ended), 'changes');
        this.#streams.add(stream);
        if (connection && this.#on === connection && !this.#list)
            stream.push(this.#all());
        else if (connection && this.#on !== connection)
            this.use(connection);
        return stream;
    }
    /** Watches over this connection from now on, which starts with a new list. */
    use(connection) {
        this.#cancelRetry();
        this.#on = undefined;
        if (this.#streams.size === 0)
            return;
        this.#on = connection;
        this.#list = [];
        connection.send({ type: 'watch', id: WATCH_ID });
    }
    take(connection, frame) {
        if (connection !== this.#on)
            return;
        if (frame.type === 'presence')
            this.#takeList(frame.connections, frame.more === true);
        if (frame.type === 'joined') {
            this.#connections.set(frame.connection.connection_id, frame.connection);
            this.#push({ type: 'joined', connection: frame.connection });
        }
        if (frame.type === 'left') {
            this.#connections.delete(frame.connection_id);
            this.#push({ type: 'left', connectionId: frame.connection_id, reason: frame.reason });
        }
    }
    /** Whether an error is about the watch: it ends all iterators, unless the hub only asks to wait. */
    refused(connection, { id, code, detail }) {
        if (id !== WATCH_ID)
            return false;
        if (connection !== this.#on)
            return true;
        if (code === 'rate_limited')
            this.#cancelRetry = this.#clock.after(RATE_LIMIT_PAUSE_MS, () => this.use(connection));
        else
            this.end(new KeywayError(code === 'insufficient_scope' ? code : 'refused', detail));
        return true;
    }
    /** Ends all iterators, with the error if there is one. Returns whether there were any. */
    end(error) {
        this.#cancelRetry();
        this.#on = undefined;
        const streams = [...this.#streams];
        this.#streams.clear();
        for (const stream of streams)
            stream.end(error);
        return streams.length > 0;
    }
    #takeList(connections, more) {
        this.#list = [...(this.#list ?? []), ...connections];
        if (more)
            return;
        this.#connections.clear();
        for (const connection of this.#list)
            this.#connections.set(connection.connection_id, connection);
        this.#list = null;
        this.#push(this.#all());
    }
    #all() {
        return { type: 'presence', connections: [...this.#connections.values()] };
    }
    #push(event) {
        for (const stream of this.#streams)
            stream.push(event);
    }
    #close(stream) {
        this.#streams.delete(stream);
        if (this.#streams.size > 0)
            return;
        this.#cancelRetry();
        this.#on?.send({ type: 'unwatch' });
        this.#on = undefined;
    }
}
