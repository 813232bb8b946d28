/**
 * What goes over the wire, in one place: the server and every client read the same lists.
 *
 * Nothing here runs; it is names, numbers and types.
 */
/** A long-lived API key: `svc_` and 32 characters of `0-9A-Za-z`. */
export const API_KEY_PATTERN = /^svc_[0-9A-Za-z]{32}$/;
/** The subprotocol that a hub client offers and the hub selects. */
export const HUB_PROTOCOL = 'keyway.hub.v1';
/** A browser cannot set headers on a WebSocket: it offers `bearer.<token>` as a second subprotocol. */
export const HUB_BEARER_PREFIX = 'bearer.';
/** Largest text frame either side may send, in bytes. */
export const HUB_MAX_FRAME_BYTES = 64 * 1024;
/** The server pings this often. */
export const HUB_HEARTBEAT_SECONDS = 25;
/** A connection that was silent for this long is dropped. */
export const HUB_SILENCE_SECONDS = 60;
/** An agent hears `token_expiring` this long before its token ends. */
export const HUB_EXPIRY_NOTICE_SECONDS = 60;
/** What the scopes that Keyway knows allow. Every other scope is the operator's own and grants nothing here. */
export const SCOPES = {
    'agent:connect': 'exchange the key for an agent token and connect to the hub',
    'agents:send': 'send messages to other connections of the same owner',
    'agents:read': 'list the live connections of the same owner',
    'account:read': 'read the profile, the balance and the ledger',
};
/** Names that start so are Keyway's: an unknown one is refused. */
export const RESERVED_SCOPE_PREFIXES = ['agent:', 'agents:', 'account:', 'keys:'];
/** Every `code` an HTTP error can carry. A code is never renamed. */
export const ERROR_CODES = [
    'invalid_json',
    'invalid_request',
    'magic_link_invalid',
    'authentication_required',
    'invalid_token',
    'invalid_api_key',
    'api_key_revoked',
    'api_key_expired',
    'invalid_refresh_token',
    'refresh_token_reused',
    'insufficient_balance',
    'insufficient_scope',
    'session_required',
    'account_suspended',
    'charge_not_authorized',
    'network_not_allowed',
    'forbidden',
    'not_found',
    'method_not_allowed',
    'payload_too_large',
    'unsupported_media_type',
    'upgrade_required',
    'key_limit_reached',
    'idempotency_conflict',
    'api_key_inactive',
    'api_key_replaced',
    'magic_link_expired',
    'magic_link_used',
    'rate_limited',
    'unavailable',
    'internal_error',
];
/** How the hub closes a connection; `reconnect` is what a client shall do then. */
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
    4410: { reasons: ['revoked'], reconnect: 'never' },
    4429: { reasons: ['rate_limited', 'too_many_connections', 'slow_consumer'], reconnect: 'backoff' },
};
