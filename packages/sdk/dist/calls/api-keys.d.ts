import type { ApiKeyObject, CreatedApiKey, Page } from '../protocol.js';
import { type Transport } from '../transport.js';
import { type PageOptions } from './paging.js';
export interface CreateApiKey {
    name?: string;
    /** Omitted or empty: everything that the owner may do with a key. */
    scopes?: string[];
    /** RFC 3339 with a zone. Omitted: never expires. */
    expires_at?: string;
    app_id?: string;
    /** CIDRs. Omitted or empty: from anywhere. */
    allowed_networks?: string[];
}
export type ApiKeyList = PageOptions & {
    status?: ApiKeyObject['status'];
};
/** API keys. Making and rotating them needs a session; a key with `keys:read` or `keys:write` may do the rest. */
export declare class ApiKeyCalls {
    #private;
    constructor(transport: Transport);
    /** The only response that contains the key itself. Not retried: it could create two keys. */
    create(body?: CreateApiKey): Promise<CreatedApiKey>;
    list({ limit, cursor, status }?: ApiKeyList): Promise<Page<ApiKeyObject>>;
    /** All keys, newest first, over all pages. */
    all(options?: Omit<ApiKeyList, 'cursor'>): AsyncGenerator<ApiKeyObject, void>;
    get(keyId: string): Promise<ApiKeyObject>;
    update(keyId: string, body: {
        name?: string;
        allowed_networks?: string[];
    }): Promise<ApiKeyObject>;
    /** A successor with the same rights; the old key works for `overlap_seconds` (default 86400) more. */
    rotate(keyId: string, body?: {
        overlap_seconds?: number;
    }): Promise<CreatedApiKey>;
    /** Permanent, at once and on all nodes. Idempotent. */
    revoke(keyId: string): Promise<ApiKeyObject>;
}
