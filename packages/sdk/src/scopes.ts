/** Keyway's scopes with descriptions. Any other scope is for the operator's own services and grants nothing here. */
export const SCOPES = {
  'agent:connect': 'exchange the key for an agent token and connect to the hub',
  'agents:send': 'send messages to other connections of the same owner',
  'agents:read': 'list the live connections of the same owner',
  'account:read': 'read the profile, the balance and the ledger',
  'account:write': 'change the name, and withdraw charge authorisations',
  'keys:read': 'list keys and read when they were used',
  'keys:write': 'rename and revoke keys, and narrow the networks they may be used from',
  'events:read': 'read the security events of the account',
  'admin:read': 'read everything that administrators see (keys of administrators only)',
  'admin:write': 'do what administrators may, except give rights (keys of administrators only)',
} as const

export type KnownScope = keyof typeof SCOPES

/** Reserved prefixes: unknown scopes with these are refused. */
export const RESERVED_SCOPE_PREFIXES = [
  'agent:',
  'agents:',
  'account:',
  'keys:',
  'events:',
  'admin:',
] as const

/** Maximum number of scopes of a key. */
export const MAX_SCOPES = 32
export const MAX_SCOPE_LENGTH = 64

/** RFC 6749 section 3.3: printable ASCII without space, quote and backslash. */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** Error message for an invalid scope name, to follow its field's name; null if it is valid. */
export function scopeProblem(scope: string): string | null {
  if (scope.length > MAX_SCOPE_LENGTH || !SCOPE_TOKEN.test(scope)) {
    return `must be a scope token of at most ${MAX_SCOPE_LENGTH} characters without spaces, for example "agent:connect"`
  }
  const isReserved = RESERVED_SCOPE_PREFIXES.some(prefix => scope.startsWith(prefix))
  if (isReserved && !Object.hasOwn(SCOPES, scope)) {
    return `is no scope that exists; these do: ${Object.keys(SCOPES).join(', ')}`
  }
  return null
}
