/** Every `code` of a problem document. A code is never renamed. */
export declare const ERROR_CODES: readonly ['invalid_json', 'invalid_request', 'magic_link_invalid', 'authentication_required', 'invalid_token', 'invalid_api_key', 'api_key_revoked', 'api_key_expired', 'invalid_refresh_token', 'refresh_token_reused', 'insufficient_balance', 'quota_exhausted', 'spend_limit_reached', 'insufficient_scope', 'session_required', 'account_suspended', 'charge_not_authorized', 'network_not_allowed', 'forbidden', 'reauthentication_required', 'not_found', 'method_not_allowed', 'payload_too_large', 'unsupported_media_type', 'upgrade_required', 'key_conflict', 'last_administrator', 'mail_not_available', 'key_limit_reached', 'idempotency_conflict', 'api_key_inactive', 'api_key_replaced', 'magic_link_expired', 'magic_link_used', 'rate_limited', 'unavailable', 'internal_error'];
export type ErrorCode = (typeof ERROR_CODES)[number];
/** One field of a body or query that was refused. */
export interface FieldError {
    field: string;
    message: string;
}
/**
 * The body of an HTTP error (RFC 9457, `application/problem+json`); the OAuth endpoints below `/oauth` answer with the
 * errors of RFC 6749 instead.
 */
export interface Problem {
    type: string;
    title: string;
    status: number;
    detail: string;
    code: ErrorCode;
    request_id: string;
    errors?: FieldError[];
    /** Seconds to wait before the request is repeated. */
    retry_after?: number;
    /** The length of the window whose limit was exceeded. */
    window?: 'second' | 'minute' | 'hour' | 'day';
    /** The setting that defines the exceeded limit. Sent only in development, when mails go to the local inbox. */
    setting?: string;
}
