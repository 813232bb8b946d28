/** A key of this machine, as `login` stored it. */
export interface StoredKey {
    key: string;
    id: string;
    name: string | null;
    scopes: string[];
    expires_at: string | null;
}
/** The keys of this machine, in the user's configuration folder. */
export declare function createCredentials(folder?: string): {
    path: string;
    find: (url: string) => StoredKey | null;
    latest: () => string | null;
    store(url: string, key: StoredKey): void;
    /** Removes the key, and returns it; null if there was none. */
    remove(url: string): StoredKey | null;
};
