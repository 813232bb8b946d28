import type { ApiKeyObject, CreatedApiKey, Json, Page, UsageAnswer, WantedKeyLimits } from '../protocol.js';
import { type Transport } from '../transport.js';
import { type PageOptions } from './paging.js';
import { type UsageRange } from './usage.js';
export interface CreateApiKey {
    name?: string | undefined;
    /**
     * The key's scopes. If omitted or empty, the key may do everything that its owner may do with a key; a policy of the
     * service may forbid that.
     */
    scopes?: string[] | undefined;
    /**
     * When the key expires (RFC 3339 with a zone). If omitted, it never does; a policy of the service may forbid that.
     */
    expires_at?: string | undefined;
    app_id?: string | undefined;
    /** CIDRs from which the key may be used. If omitted or empty, it may be used from any address. */
    allowed_networks?: string[] | undefined;
    /** An id of your own, for example of a customer, at most 128 characters. */
    external_id?: string | undefined;
    /** JSON of your own, at most 16 KiB. */
    metadata?: Metadata | undefined;
    limits?: WantedKeyLimits | undefined;
}
export interface ChangeApiKey {
    /** An empty string removes the name. */
    name?: string | undefined;
    allowed_networks?: string[] | undefined;
    /** Null removes the id. */
    external_id?: string | null | undefined;
    /** Replaces all metadata; null removes them. */
    metadata?: Metadata | null | undefined;
    /** Replaces all limits; null removes them. */
    limits?: WantedKeyLimits | null | undefined;
}
export type Metadata = {
    [name: string]: Json;
};
export type ApiKeyList = PageOptions & {
    status?: ApiKeyObject['status'];
    external_id?: string;
};
/**
 * Calls about API keys. Creating and rotating keys needs a session. A key with `keys:read` may read keys, and one with
 * `keys:write` may change and revoke them, but only narrow their networks and tighten their limits.
 */
export declare class ApiKeyCalls {
    #private;
    constructor(transport: Transport);
    /** Creates a key. Only this response contains the key itself. Not retried: a retry could create a second key. */
    create(body?: CreateApiKey): Promise<CreatedApiKey>;
    list({ limit, cursor, status, external_id }?: ApiKeyList): Promise<Page<ApiKeyObject>>;
    /** All keys, newest first, over all pages. */
    all(options?: Omit<ApiKeyList, 'cursor'>): AsyncGenerator<ApiKeyObject, void>;
    get(keyId: string): Promise<ApiKeyObject>;
    update(keyId: string, body: ChangeApiKey): Promise<ApiKeyObject>;
    /** The usage of the key by hour or day, complete up to some seconds ago. */
    usage(keyId: string, range?: UsageRange): Promise<UsageAnswer>;
    /**
     * Creates a successor with the same rights. The old key works for another `overlap_seconds` (default 86400), but not
     * beyond its own expiry.
     */
    rotate(keyId: string, body?: {
        overlap_seconds?: number;
    }): Promise<CreatedApiKey>;
    /** Revokes the key permanently, at once on all nodes. Idempotent. */
    revoke(keyId: string): Promise<ApiKeyObject>;
}
