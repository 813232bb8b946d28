/** What the scopes that Keyway knows allow. Every other scope is the operator's own and grants nothing here. */
export const SCOPES = {
    'agent:connect': 'exchange the key for an agent token and connect to the hub',
    'agents:send': 'send messages to other connections of the same owner',
    'agents:read': 'list the live connections of the same owner',
    'account:read': 'read the profile, the balance and the ledger',
};
/** Names that start so are Keyway's: an unknown one is refused. */
export const RESERVED_SCOPE_PREFIXES = ['agent:', 'agents:', 'account:', 'keys:'];
