import { type TokenStore } from './token-store.js';
export interface FileTokenStoreOptions {
}
/**
 * A store in a file that only this user can read (mode 0600, its folder 0700 if it is new), for all processes of a machine:
 * one at a time refreshes, and one that dies meanwhile holds up the others for five seconds. A crash leaves the old tokens or the
 * new ones, never half of them. All methods throw a `KeywayError` `invalid_configuration` if the file cannot be read or
 * written, or holds anything else.
 */
export declare function fileTokenStore(path: string, options?: FileTokenStoreOptions): TokenStore;
