export interface LoginOptions {
    url: string | undefined;
    /** The scopes of the key; empty means `agent:connect`. */
    scopes: readonly string[];
    name: string | undefined;
    opensBrowser: boolean;
}
/** Creates a key for this machine by the device grant (RFC 8628) and stores it, so that nobody has to copy one. */
export declare function login(options: LoginOptions): Promise<void>;
