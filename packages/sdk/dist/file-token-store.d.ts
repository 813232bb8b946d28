import { type TokenStore } from './token-store.js';
export interface FileTokenStoreOptions {
}
/**
 * A store in a file that only this user can read (mode 0600, its folder 0700 if it is new), shared by all processes of
 * a machine. One process at a time refreshes; if it dies meanwhile, the others wait for five seconds. A crash leaves
 * either the old or the new tokens. All methods throw a `KeywayError` `invalid_configuration` if they cannot read,
 * write, remove or lock the file; `get` also if it holds anything but tokens. Without a file `get` returns undefined.
 */
export declare function fileTokenStore(path: string, options?: FileTokenStoreOptions): TokenStore;
