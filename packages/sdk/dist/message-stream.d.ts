import { KeywayError } from './errors.js';
/** An asynchronous iterator over items that are pushed into it, for one consumer. */
export declare class MessageStream<Message> implements AsyncIterableIterator<Message, undefined> {
    #private;
    /** @param items what the messages are called in errors, in the plural */
    constructor(onReturn: (stream: MessageStream<Message>) => void, items?: string);
    push(message: Message): void;
    /** Buffered messages are still delivered; then the iteration ends, or throws the error. */
    end(error?: KeywayError): void;
    next(): Promise<IteratorResult<Message, undefined>>;
    return(): Promise<IteratorResult<Message, undefined>>;
    [Symbol.asyncIterator](): this;
}
