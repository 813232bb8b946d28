import { type NetworkCause } from './network-cause.js';
import type { ErrorCode, FieldError, Problem } from './protocol.js';
/** Codes for errors on the client's side, which no server sends. */
export type ClientErrorCode = 'network_error' | 'timeout' | 'bad_response' | 'invalid_configuration' | 'too_large' | 'queue_full' | 'refused' | 'revoked' | 'closed' | 'no_responders' | 'request_failed';
export interface KeywayErrorDetails {
    /** HTTP status; 0 by default. */
    status?: number | undefined;
    retryable?: boolean | undefined;
    requestId?: string | undefined;
    /** Seconds. */
    retryAfter?: number | undefined;
    errors?: FieldError[] | undefined;
    reason?: string | undefined;
    networkCause?: NetworkCause | undefined;
    cause?: unknown | undefined;
}
/**
 * The error of all failures in this package; only an aborted call rejects with its signal's own reason. `code` is
 * stable; `message` says what to do.
 */
export declare class KeywayError extends Error {
    readonly name = "KeywayError";
    readonly code: ErrorCode | ClientErrorCode;
    /**
     * The HTTP status of the response. Without a response it is 401 where this package itself finds that nobody is signed
     * in or that a token is invalid, and 0 otherwise.
     */
    readonly status: number;
    /** Whether the error is retryable: the same call may succeed later. */
    readonly retryable: boolean;
    /** The response's `X-Request-Id`, for support. */
    readonly requestId: string | undefined;
    /** Seconds to wait before trying again. */
    readonly retryAfter: number | undefined;
    /** The fields that were refused. */
    readonly errors: FieldError[];
    /** For `request_failed`: `failed` if the responder's handler threw, `busy`, or a code that the handler chose. */
    readonly reason: string | undefined;
    /** For `network_error`: why the service could not be reached. */
    readonly networkCause: NetworkCause | undefined;
    constructor(code: ErrorCode | ClientErrorCode, message: string, details?: KeywayErrorDetails);
}
/** Converts an HTTP response to an error; without a problem document it is `bad_response`. */
export declare function errorFromResponse(response: Response): Promise<KeywayError>;
/** Converts a problem document to an error. `fallback` has values for members that the document lacks. */
export declare function errorFromProblem(problem: Problem, fallback?: Pick<KeywayErrorDetails, 'requestId' | 'retryAfter'>): KeywayError;
/** Converts an error that `fetch` threw to `network_error`; returns a `KeywayError` as it is. */
export declare function errorFromFetch(cause: unknown, url: string): KeywayError;
export declare function closedError(): KeywayError;
