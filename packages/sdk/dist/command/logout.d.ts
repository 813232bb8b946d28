/** Forgets the key of this machine. It revokes nothing, since other processes may use the key. */
export declare function logout(asked: string | undefined): void;
