import { NETWORK_ADVICE, networkCauseOf } from './network-cause.js';
/**
 * The error of all failures in this package; only an aborted call rejects with its signal's own reason. `code` is
 * stable; `message` says what to do.
 */
export class KeywayError extends Error {
    name = 'KeywayError';
    code;
    /**
     * The HTTP status of the response. Without a response it is 401 where this package itself finds that nobody is signed
     * in or that a token is invalid, and 0 otherwise.
     */
    status;
    /** Whether the error is retryable: the same call may succeed later. */
    retryable;
    /** The response's `X-Request-Id`, for support. */
    requestId;
    /** Seconds to wait before trying again. */
    retryAfter;
    /** The fields that were refused. */
    errors;
    /** For `request_failed`: `failed` if the responder's handler threw, `busy`, or a code that the handler chose. */
    reason;
    /** For `network_error`: why the service could not be reached. */
    networkCause;
    constructor(code, message, details = {}) {
        super(message, details.cause === undefined ? undefined : { cause: details.cause });
        this.code = code;
        this.status = details.status ?? 0;
        this.retryable = details.retryable ?? false;
        this.requestId = details.requestId;
        this.retryAfter = details.retryAfter;
        this.errors = details.errors ?? [];
        this.reason = details.reason;
        this.networkCause = details.networkCause;
    }
}
/** Converts an HTTP response to an error; without a problem document it is `bad_response`. */
export async function errorFromResponse(response) {
    const problem = await readProblem(response);
    const { status } = response;
    const headers = {
        requestId: response.headers.get('x-request-id') ?? undefined,
        retryAfter: parseRetryAfter(response.headers.get('retry-after')),
    };
    if (problem)
        return errorFromProblem({ ...problem, status }, headers);
    const message = `The server answered ${status} without a problem document. Check that the url is Keyway's.`;
    return new KeywayError('bad_response', message, { status, retryable: isRetryable(status), ...headers });
}
/** Converts a problem document to an error. `fallback` has values for members that the document lacks. */
export function errorFromProblem(problem, fallback = {}) {
    return new KeywayError(problem.code, problem.detail, {
        status: problem.status,
        retryable: isRetryable(problem.status),
        requestId: problem.request_id ?? fallback.requestId,
        retryAfter: problem.retry_after ?? fallback.retryAfter,
        errors: problem.errors,
    });
}
function isRetryable(status) {
    return status === 429 || status >= 500;
}
/** Converts an error that `fetch` threw to `network_error`; returns a `KeywayError` as it is. */
export function errorFromFetch(cause, url) {
    if (cause instanceof KeywayError)
        return cause;
    const networkCause = networkCauseOf(cause);
    const message = `Could not reach ${new URL(url).origin}: ${NETWORK_ADVICE[networkCause]}.`;
    return new KeywayError('network_error', message, { retryable: true, networkCause, cause });
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
/** `Retry-After` in seconds; the date form is ignored, since the local clock may be wrong. */
function parseRetryAfter(header) {
    return header !== null && /^\d{1,9}$/.test(header) ? Number(header) : undefined;
}
export function closedError() {
    return new KeywayError('closed', 'The agent was closed before the hub acknowledged this message.');
}
