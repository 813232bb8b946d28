import type { RequestHandler } from './agent-options.js';
import type { MessageFrame } from './handover.js';
import { type Json } from './protocol.js';
type SendAnswer = (to: string, answer: Json, replyTo: string) => Promise<unknown>;
/** Answers the requests that arrive (docs/hub-protocol.md, section 3). */
export declare class Responder {
    #private;
    handler: RequestHandler | undefined;
    constructor(send: SendAnswer);
    /** Handles a message that is a request, and returns whether it is; a repeated request gets the same answer again. */
    handleRequest(frame: MessageFrame): boolean;
}
export {};
