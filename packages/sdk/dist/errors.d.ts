import type { ErrorCode, FieldError } from './protocol.js';
/** Codes that no server sends: what went wrong on this side of the line. */
export type ClientErrorCode = 'network_error' | 'timeout' | 'bad_response' | 'invalid_configuration' | 'too_large' | 'queue_full' | 'refused' | 'revoked' | 'closed';
export interface KeywayErrorDetails {
    /** HTTP status; 0 when there was no answer. */
    status?: number;
    retryable?: boolean;
    requestId?: string;
    /** Seconds. */
    retryAfter?: number;
    errors?: FieldError[];
    cause?: unknown;
}
/** Every error that this package throws. `code` is stable; `message` says what to do. */
export declare class KeywayError extends Error {
    readonly name = "KeywayError";
    readonly code: ErrorCode | ClientErrorCode;
    /** HTTP status; 0 when no answer came or none was asked for. */
    readonly status: number;
    /** Whether the same call may succeed later without a change. */
    readonly retryable: boolean;
    /** The server's `X-Request-Id`, for its operator. */
    readonly requestId: string | undefined;
    /** Seconds to wait before trying again. */
    readonly retryAfter: number | undefined;
    /** The fields that were refused. */
    readonly errors: FieldError[];
    constructor(code: ErrorCode | ClientErrorCode, message: string, details?: KeywayErrorDetails);
}
/** The error that an HTTP answer stands for; an answer that is no problem document becomes `bad_response`. */
export declare function errorFromResponse(response: Response): Promise<KeywayError>;
/** What `fetch` throws, in our words. */
export declare function errorFromFetch(cause: unknown, url: string): KeywayError;
