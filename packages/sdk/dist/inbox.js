import { MessageStream } from './message-stream.js';
import { RecentIds } from './recent-ids.js';
/** Received messages, without duplicates, for all iterators. */
export class Inbox {
    #seen = new RecentIds();
    #streams = new Set();
    /** False if the message has already arrived in another session (`HubSession`). */
    isNew(session, { id, from }) {
        return this.#seen.add(`${from} ${id}`, session);
    }
    deliver({ id, from, from_key_id, data, reply_to }) {
        const message = { id, from, fromKeyId: from_key_id, data };
        if (reply_to !== undefined)
            message.replyTo = reply_to;
        for (const stream of this.#streams)
            stream.push(message);
        return message;
    }
    open() {
        const stream = new MessageStream(ended => this.#streams.delete(ended));
        this.#streams.add(stream);
        return stream;
    }
    /** Ends all iterators, with the error if there is one. Returns whether there were any. */
    end(error) {
        const streams = [...this.#streams];
        this.#streams.clear();
        for (const stream of streams)
            stream.end(error);
        return streams.length > 0;
    }
}
