/** The hub's close codes; `reconnect` is what a client should do. */
export const CLOSE_CODES = {
    1001: { reasons: ['going_away'], reconnect: 'now' },
    1009: { reasons: ['too_big'], reconnect: 'never' },
    1011: { reasons: ['internal'], reconnect: 'backoff' },
    1012: { reasons: ['restarting'], reconnect: 'now' },
    1013: { reasons: ['try_again_later'], reconnect: 'backoff' },
    4400: { reasons: ['bad_message'], reconnect: 'never' },
    4401: { reasons: ['invalid_token'], reconnect: 'exchange' },
    4403: { reasons: ['insufficient_scope', 'account_suspended', 'network_not_allowed'], reconnect: 'never' },
    4408: { reasons: ['token_expired'], reconnect: 'exchange' },
    4409: { reasons: ['resumed_elsewhere'], reconnect: 'never' },
    4410: { reasons: ['revoked'], reconnect: 'never' },
    4429: { reasons: ['rate_limited', 'too_many_connections', 'slow_consumer'], reconnect: 'backoff' },
};
