/** Keyway's scopes with descriptions. Any other scope is for the operator's own services and grants nothing here. */
export declare const SCOPES: {
    readonly 'agent:connect': 'exchange the key for an agent token and connect to the hub';
    readonly 'agents:send': 'send messages to other connections of the same owner';
    readonly 'agents:read': 'list the live connections of the same owner';
    readonly 'account:read': 'read the profile, the balance and the ledger';
    readonly 'account:write': 'change the name, and withdraw charge authorisations';
    readonly 'keys:read': 'list keys and read when they were used';
    readonly 'keys:write': 'rename and revoke keys, and narrow the networks they may be used from';
    readonly 'events:read': 'read the security events of the account';
    readonly 'admin:read': 'read everything that administrators see (keys of administrators only)';
    readonly 'admin:write': 'do what administrators may, except give rights (keys of administrators only)';
};
export type KnownScope = keyof typeof SCOPES;
/** Reserved prefixes: unknown scopes with these are refused. */
export declare const RESERVED_SCOPE_PREFIXES: readonly ['agent:', 'agents:', 'account:', 'keys:', 'events:', 'admin:'];
/** Maximum number of scopes of a key. */
export declare const MAX_SCOPES = 32;
export declare const MAX_SCOPE_LENGTH = 64;
/** Error message for an invalid scope name, to follow its field's name; null if it is valid. */
export declare function scopeProblem(scope: string): string | null;
