/** The hub's close codes; `reconnect` is what a client should do. */
export declare const CLOSE_CODES: {
    readonly 1001: {
        readonly reasons: readonly ['going_away'];
        readonly reconnect: 'now';
    };
    readonly 1009: {
        readonly reasons: readonly ['too_big'];
        readonly reconnect: 'never';
    };
    readonly 1011: {
        readonly reasons: readonly ['internal'];
        readonly reconnect: 'backoff';
    };
    readonly 1012: {
        readonly reasons: readonly ['restarting'];
        readonly reconnect: 'now';
    };
    readonly 1013: {
        readonly reasons: readonly ['try_again_later'];
        readonly reconnect: 'backoff';
    };
    readonly 4400: {
        readonly reasons: readonly ['bad_message'];
        readonly reconnect: 'never';
    };
    readonly 4401: {
        readonly reasons: readonly ['invalid_token'];
        readonly reconnect: 'exchange';
    };
    readonly 4403: {
        readonly reasons: readonly ['insufficient_scope', 'account_suspended', 'network_not_allowed'];
        readonly reconnect: 'never';
    };
    readonly 4408: {
        readonly reasons: readonly ['token_expired'];
        readonly reconnect: 'exchange';
    };
    readonly 4409: {
        readonly reasons: readonly ['resumed_elsewhere'];
        readonly reconnect: 'never';
    };
    readonly 4410: {
        readonly reasons: readonly ['revoked'];
        readonly reconnect: 'never';
    };
    readonly 4429: {
        readonly reasons: readonly ['rate_limited', 'too_many_connections', 'slow_consumer'];
        readonly reconnect: 'backoff';
    };
};
export type CloseCode = keyof typeof CLOSE_CODES;
export type CloseReason = (typeof CLOSE_CODES)[CloseCode]['reasons'][number];
