/**
 * What goes over the wire, in one place: the server and every client read the same lists.
 *
 * Nothing here runs; it is names, numbers and types.
 */
/** A long-lived API key: `svc_` and 32 characters of `0-9A-Za-z`. */
export declare const API_KEY_PATTERN: RegExp;
/** The subprotocol that a hub client offers and the hub selects. */
export declare const HUB_PROTOCOL = "keyway.hub.v1";
/** A browser cannot set headers on a WebSocket: it offers `bearer.<token>` as a second subprotocol. */
export declare const HUB_BEARER_PREFIX = "bearer.";
/** Largest text frame either side may send, in bytes. */
export declare const HUB_MAX_FRAME_BYTES: number;
/** The server pings this often. */
export declare const HUB_HEARTBEAT_SECONDS = 25;
/** A connection that was silent for this long is dropped. */
export declare const HUB_SILENCE_SECONDS = 60;
/** An agent hears `token_expiring` this long before its token ends. */
export declare const HUB_EXPIRY_NOTICE_SECONDS = 60;
/** What the scopes that Keyway knows allow. Every other scope is the operator's own and grants nothing here. */
export declare const SCOPES: {
    readonly 'agent:connect': 'exchange the key for an agent token and connect to the hub';
    readonly 'agents:send': 'send messages to other connections of the same owner';
    readonly 'agents:read': 'list the live connections of the same owner';
    readonly 'account:read': 'read the profile, the balance and the ledger';
};
export type KnownScope = keyof typeof SCOPES;
/** Names that start so are Keyway's: an unknown one is refused. */
export declare const RESERVED_SCOPE_PREFIXES: readonly ['agent:', 'agents:', 'account:', 'keys:'];
/** Every `code` an HTTP error can carry. A code is never renamed. */
export declare const ERROR_CODES: readonly ['invalid_json', 'invalid_request', 'magic_link_invalid', 'authentication_required', 'invalid_token', 'invalid_api_key', 'api_key_revoked', 'api_key_expired', 'invalid_refresh_token', 'refresh_token_reused', 'insufficient_balance', 'insufficient_scope', 'session_required', 'account_suspended', 'charge_not_authorized', 'network_not_allowed', 'forbidden', 'not_found', 'method_not_allowed', 'payload_too_large', 'unsupported_media_type', 'upgrade_required', 'key_limit_reached', 'idempotency_conflict', 'api_key_inactive', 'api_key_replaced', 'magic_link_expired', 'magic_link_used', 'rate_limited', 'unavailable', 'internal_error'];
export type ErrorCode = (typeof ERROR_CODES)[number];
/** One field of a body or query that was refused. */
export interface FieldError {
    field: string;
    message: string;
}
/** The body of every HTTP error (RFC 9457, `application/problem+json`). */
export interface Problem {
    type: string;
    title: string;
    status: number;
    detail: string;
    code: ErrorCode;
    request_id: string;
    errors?: FieldError[];
    /** Seconds. */
    retry_after?: number;
    window?: 'minute' | 'hour' | 'day';
    /** With a local inbox: the setting that holds the limit. */
    setting?: string;
}
/** How the hub closes a connection; `reconnect` is what a client shall do then. */
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
/** JSON as it travels in `data`. */
export type Json = null | boolean | number | string | Json[] | {
    [name: string]: Json;
};
export type FrameErrorCode = 'unknown_type' | 'invalid_frame' | 'invalid_token' | 'insufficient_scope' | 'rate_limited';
/** What an agent may send. */
export type AgentFrame = {
    type: 'ping';
} | {
    type: 'token';
    token: string;
} | {
    type: 'send';
    id: string;
    to: string;
    data: Json;
};
/** What the server sends. */
export type ServerFrame = {
    type: 'ready';
    connection_id: string;
    agent_id: string;
    key_id: string;
    key_name: string | null;
    scopes: string[];
    /** RFC 3339. */
    expires_at: string;
    /** Seconds. */
    expires_in: number;
    heartbeat_seconds: number;
} | {
    type: 'pong';
} | {
    type: 'token_accepted';
    expires_at: string;
    expires_in: number;
} | {
    type: 'token_expiring';
    expires_at: string;
    expires_in: number;
} | {
    type: 'message';
    id: string;
    from: string;
    from_key_id: string | null;
    data: Json;
} | {
    type: 'sent';
    id: string;
    delivered: number;
} | {
    type: 'draining';
    close_in_seconds: number;
} | {
    type: 'error';
    code: FrameErrorCode;
    detail: string;
    id?: string;
};
/** An API key as every call shows it; the whole key is never part of it. */
export interface ApiKeyObject {
    id: string;
    user_id: string;
    key_prefix: string;
    name: string | null;
    app_id: string;
    scopes: string[];
    unrestricted: boolean;
    allowed_networks: string[];
    status: 'active' | 'expired' | 'revoked';
    created_at: string;
    last_used_at: string | null;
    expires_at: string | null;
    revoked_at: string | null;
    replaced_by: string | null;
}
/** The one answer that holds the whole key. */
export interface CreatedApiKey extends ApiKeyObject {
    key: string;
}
export interface AgentTokenAnswer {
    token: string;
    agent_id: string;
    /** Seconds. */
    expires_in: number;
}
export interface UserObject {
    id: string;
    email: string;
    name: string | null;
    role: 'user' | 'admin';
    status: 'active' | 'suspended' | 'deleted';
    created_at: string;
}
export interface SendMagicLinkAnswer {
    status: 'sent';
    /** Seconds. */
    expires_in: number;
    login_id: string;
}
export interface SessionAnswer {
    user: UserObject;
    access_token: string;
    token_type: 'Bearer';
    /** Seconds. */
    expires_in: number;
    refresh_token: string;
    /** Seconds. */
    refresh_expires_in: number;
    session_id: string;
}
export interface SignInAnswer extends SessionAnswer {
    is_new_user: boolean;
}
export interface SessionObject {
    id: string;
    created_at: string;
    last_used_at: string;
    expires_at: string;
    client: string | null;
    network: string;
    current: boolean;
}
export interface Money {
    /** Decimal with 2 to 6 places. */
    amount: string;
    currency: 'USD';
}
export interface ChargeAuthorizationObject {
    app_id: string;
    name: string;
    granted_at: string;
    revoked_at: string | null;
}
export interface AccountObject {
    user: UserObject;
    balance: Money;
    subscription: {
        plan: string;
        status: string;
        started_at: string;
    };
    charge_authorizations: ChargeAuthorizationObject[];
}
export interface LedgerEntryObject {
    id: string;
    kind: string;
    /** Signed decimal. */
    amount: string;
    balance_after: string;
    app_id: string | null;
    description: string;
    created_at: string;
}
export interface SecurityEventObject {
    id: string;
    type: string;
    at: string;
    network: string | null;
    client: string | null;
    key_id?: string;
    session_id?: string;
}
export interface AgentConnectionObject {
    connection_id: string;
    key_id: string;
    key_name: string | null;
    connected_at: string;
    address: string;
    client: string | null;
}
/** Every list, newest first. */
export interface Page<Item> {
    data: Item[];
    has_more: boolean;
    next_cursor: string | null;
}
/** One entry of `GET /v1/revocations`: what ended before its time. */
export interface RevocationObject {
    id: string;
    kind: 'api_key' | 'session' | 'user';
    /** The id of the key, session or user. */
    subject_id: string;
    /** Its owner. */
    user_id: string;
    at: string;
}
/** `POST /auth/introspect` (RFC 7662 section 2.2). */
export type IntrospectionAnswer = {
    active: false;
} | ({
    active: true;
} & Record<string, Json>);
