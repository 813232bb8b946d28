import type { AgentMessage } from './agent-options.js';
import type { KeywayError } from './errors.js';
import type { MessageFrame } from './handover.js';
import type { HubConnection } from './hub-connection.js';
import { MessageStream } from './message-stream.js';
/** What arrives, each message once, for all iterations over it. */
export declare class Inbox {
    #private;
    /** The message of a frame; undefined when the other of two connections that overlap has brought it before. */
    take(connection: HubConnection, { id, from, from_key_id, data }: MessageFrame): AgentMessage | undefined;
    open(): MessageStream<AgentMessage>;
    /** Ends all iterations, with the error if there is one; whether there was any. */
    end(error: KeywayError | undefined): boolean;
}
