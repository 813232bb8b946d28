export interface LoginOptions {
    url: string | undefined;
    /** The scopes of the key; empty: `agent:connect`. */
    scopes: readonly string[];
    name: string | undefined;
    opensBrowser: boolean;
}
/** Gets a key for this machine by the device grant (RFC 8628) and stores it. Nobody copies a key. */
export declare function login(options: LoginOptions): Promise<void>;
