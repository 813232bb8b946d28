import type { AgentMessage } from './agent-options.js';
import type { KeywayError } from './errors.js';
import type { MessageFrame } from './handover.js';
import { MessageStream } from './message-stream.js';
/** Received messages, without duplicates, for all iterators. */
export declare class Inbox {
    #private;
    /** False if the message has already arrived in another session (`HubSession`). */
    isNew(session: object, { id, from }: MessageFrame): boolean;
    deliver({ id, from, from_key_id, data, reply_to }: MessageFrame): AgentMessage;
    open(): MessageStream<AgentMessage>;
    /** Ends all iterators, with the error if there is one. Returns whether there were any. */
    end(error: KeywayError | undefined): boolean;
}
