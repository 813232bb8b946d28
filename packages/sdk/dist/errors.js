/** Every error that this package throws. `code` is stable; `message` says what to do. */
export class KeywayError extends Error {
    name = 'KeywayError';
    code;
    /** HTTP status; 0 when no answer came or none was asked for. */
    status;
    /** Whether the same call may succeed later without a change. */
    retryable;
    /** The server's `X-Request-Id`, for its operator. */
    requestId;
    /** Seconds to wait before trying again. */
    retryAfter;
    /** The fields that were refused. */
    errors;
    constructor(code, message, details = {}) {
        super(message, details.cause === undefined ? undefined : { cause: details.cause });
        this.code = code;
        this.status = details.status ?? 0;
        this.retryable = details.retryable ?? false;
        this.requestId = details.requestId;
        this.retryAfter = details.retryAfter;
        this.errors = details.errors ?? [];
    }
}
/** The error that an HTTP answer stands for; an answer that is no problem document becomes `bad_response`. */
export async function errorFromResponse(response) {
    const problem = await readProblem(response);
    const { status } = response;
    const requestId = problem?.request_id ?? response.headers.get('x-request-id') ?? undefined;
    const retryAfter = problem?.retry_after ?? secondsIn(response.headers.get('retry-after'));
    const retryable = status === 429 || status >= 500;
    const details = { status, retryable, requestId, retryAfter, errors: problem?.errors };
    if (problem)
        return new KeywayError(problem.code, problem.detail, details);
    const message = `The server answered ${status} without a problem document. Check that the url is Keyway's.`;
    return new KeywayError('bad_response', message, details);
}
/** What `fetch` throws, in our words. */
export function errorFromFetch(cause, url) {
    if (cause instanceof KeywayError)
        return cause;
    const message = `Could not reach ${new URL(url).origin}. Check the url and the network.`;
    return new KeywayError('network_error', message, { retryable: true, cause });
}
async function readProblem(response) {
    try {
        const body = (await response.json());
        return typeof body?.code === 'string' && typeof body.detail === 'string' ? body : undefined;
    }
    catch {
        return undefined;
    }
}
/** `Retry-After` as delta-seconds; the date form would need a wall clock that may be wrong here. */
function secondsIn(header) {
    return header !== null && /^\d{1,9}$/.test(header) ? Number(header) : undefined;
}
