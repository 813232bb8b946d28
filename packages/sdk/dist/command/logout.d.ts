/** Removes the stored key of this machine. Does not revoke it, since other processes may use it. */
export declare function logout(urlOption: string | undefined): void;
