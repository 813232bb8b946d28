import type { AgentConnectionObject } from './api-objects.js';
/** The subprotocol that a hub client offers and the hub selects. */
export declare const HUB_PROTOCOL = "keyway.hub.v1";
/** A browser cannot set headers on a WebSocket: it offers `bearer.<token>` as a second subprotocol. */
export declare const HUB_BEARER_PREFIX = "bearer.";
/** A broken connection is resumed by offering `resume.<resume_token>.<last seq>` as well. */
export declare const HUB_RESUME_PREFIX = "resume.";
/** Largest text frame either side may send, in bytes. */
export declare const HUB_MAX_FRAME_BYTES: number;
/**
 * A message whose id has this prefix is a request: each receiver sends one answer, with `reply_to` and an `Answer` as
 * data.
 */
export declare const REQUEST_ID_PREFIX = "request.";
/** A JSON value, as in `data`. */
export type Json = null | boolean | number | string | Json[] | {
    [name: string]: Json;
};
/**
 * A value that JSON represents without loss. Unlike `Json` it accepts objects of an interface, which has no index
 * signature. Functions become `never`, and so do the methods of class instances such as dates, so that these values do
 * not compile.
 */
export type JsonCompatible<Value> = Value extends Json ? Value : Value extends (...parameters: never[]) => unknown ? never : Value extends object ? {
    [Name in keyof Value]: JsonCompatible<Value[Name]>;
} : never;
/** What an agent sends as `data`. */
export type Sendable<Value> = Value & JsonCompatible<Value>;
/** The data of an answer to a request. `code` is `no_handler`, `busy`, `failed` or one that the responder chose. */
export type Answer = {
    result: Json;
} | {
    error: {
        code: string;
        message: string;
    };
};
export type FrameErrorCode = 'unknown_type' | 'invalid_frame' | 'invalid_token' | 'insufficient_scope' | 'rate_limited' | 'out_of_order';
/** Frames that agents send. */
export type AgentFrame = {
    type: 'ping';
} | {
    type: 'token';
    token: string;
}
/** `seq` counts from 1, also across resumptions; the hub accepts each number once, in order. It may be absent. */
 | {
    type: 'send';
    id: string;
    to: string;
    data: Json;
    reply_to?: string;
    seq?: number;
}
/** `id` comes back in the `error` that refuses or ends the watch. */
 | {
    type: 'watch';
    id?: string;
} | {
    type: 'unwatch';
};
/** Frames that the hub sends. */
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
    /** Absent, like the next two, from hubs that cannot resume. */
    resume_token?: string;
    /** How long a broken connection can be resumed. */
    resume_seconds?: number;
    /** Whether this connection continues the one that was to be resumed; missed messages follow. */
    resumed?: boolean;
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
}
/** `seq` counts from 1 for a connection and across its resumptions; absent from hubs that cannot resume. */
 | {
    type: 'message';
    seq?: number;
    id: string;
    from: string;
    from_key_id: string | null;
    data: Json;
    reply_to?: string;
}
/** `held`: number of broken connections that get the message if they resume; absent from hubs that cannot resume. */
 | {
    type: 'sent';
    id: string;
    delivered: number;
    held?: number;
} | {
    type: 'draining';
    close_in_seconds: number;
} | {
    type: 'error';
    code: FrameErrorCode;
    detail: string;
    id?: string;
}
/** All connections of the owner. A long list takes several frames, and all but the last have `more`. */
 | {
    type: 'presence';
    connections: AgentConnectionObject[];
    more?: true;
} | {
    type: 'joined';
    connection: AgentConnectionObject;
} | {
    type: 'left';
    connection_id: string;
    reason: string;
};
