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
    /** The one answer that holds the whole key. Not repeated by itself: it would make two. */
    create(body?: CreateApiKey): Promise<CreatedApiKey>;
    list({ limit, cursor, status }?: ApiKeyList): Promise<Page<ApiKeyObject>>;
    /** All of them, newest first, over as many pages as there are. */
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
    /** For good, at once and everywhere; repeating it changes nothing. */
    revoke(keyId: string): Promise<ApiKeyObject>;
}
