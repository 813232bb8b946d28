import { KeywayError } from './errors.js';
import { REQUEST_ID_PREFIX } from './protocol.js';
/** Maximum number of requests that are handled concurrently. */
const MAX_CONCURRENT_REQUESTS = 100;
/** Number of answers kept for requests that arrive again, since a sender repeats what was not acknowledged. */
const MAX_KEPT_ANSWERS = 256;
/** Maximum length of an error's message, in characters. */
const MAX_ERROR_LENGTH = 1000;
/** Answers the requests that arrive (docs/hub-protocol.md, section 3). */
export class Responder {
    #send;
    #handledRequests = new Map();
    #running = 0;
    handler;
    constructor(send) {
        this.#send = send;
    }
    /** Handles a message that is a request, and returns whether it is; a repeated request gets the same answer again. */
    handleRequest(frame) {
        if (!frame.id.startsWith(REQUEST_ID_PREFIX))
            return false;
        const requestKey = `${frame.from_key_id} ${frame.id}`;
        const earlierRequest = this.#handledRequests.get(requestKey);
        if (earlierRequest) {
            earlierRequest.from = frame.from;
            if (earlierRequest.answer)
                void this.#reply(frame, earlierRequest.answer);
        }
        else if (!this.handler) {
            void this.#reply(frame, errorAnswer('no_handler', 'This agent answers no requests.'));
        }
        else if (this.#running >= MAX_CONCURRENT_REQUESTS) {
            void this.#reply(frame, errorAnswer('busy', `This agent handles ${MAX_CONCURRENT_REQUESTS} requests already.`));
        }
        else {
            void this.#handle(requestKey, frame, this.handler);
        }
        return true;
    }
    async #handle(requestKey, frame, handler) {
        const handledRequest = { from: frame.from, answer: undefined };
        this.#remember(requestKey, handledRequest);
        this.#running++;
        const { id, from, from_key_id, data } = frame;
        handledRequest.answer = await answerOf(async () => handler({ id, from, fromKeyId: from_key_id, data }));
        await this.#reply({ ...frame, from: handledRequest.from }, handledRequest.answer);
        this.#running--;
    }
    #remember(requestKey, handledRequest) {
        this.#handledRequests.set(requestKey, handledRequest);
        if (this.#handledRequests.size > MAX_KEPT_ANSWERS)
            this.#handledRequests.delete(this.#handledRequests.keys().next().value);
    }
    /** An answer that is not JSON or too long is replaced by the error `failed`; other errors of the send are ignored. */
    async #reply({ id, from }, answer) {
        await this.#send(from, answer, id).catch(error => {
            if (error instanceof KeywayError && error.code !== 'too_large')
                return;
            return this.#send(from, errorAnswer('failed', error.message), id).catch(() => { });
        });
    }
}
async function answerOf(handle) {
    try {
        return { result: (await handle()) ?? null };
    }
    catch (error) {
        const chosenCode = error instanceof KeywayError ? error.reason : undefined;
        return errorAnswer(chosenCode ?? 'failed', error instanceof Error ? error.message : String(error));
    }
}
function errorAnswer(code, message) {
    return { error: { code, message: message.slice(0, MAX_ERROR_LENGTH) } };
}
