import { MAX_SCOPES, scopeProblem } from '@keyway/sdk/protocol'
import { CLI_CLIENT_ID } from '../apps/app.ts'

/** The scope that gives a token the right to create one key. No key can have this scope. */
export const KEYS_CREATE = 'keys:create'
const DEFAULT_KEY_SCOPE = 'agent:connect'

/** The scopes of the key that a token with these scopes may create. */
export function keyScopesOf(scopes: readonly string[]): string[] {
  return scopes.filter(scope => scope !== KEYS_CREATE)
}

/**
 * The scopes of a request by the command: `keys:create` and the scopes of the key, by default `agent:connect`.
 * Administrative scopes are never delegated to a device.
 *
 * @param requested without duplicates
 * @returns in `refused`, why the command may not ask for these scopes
 */
export function cliScopes(requested: readonly string[]): { scopes: string[] } | { refused: string } {
  if (requested.length > 0 && !requested.includes(KEYS_CREATE))
    return { refused: `${CLI_CLIENT_ID} may only ask ${KEYS_CREATE}, with the scopes of the key beside it` }
  const keyScopes = keyScopesOf(requested)
  if (keyScopes.length > MAX_SCOPES) return { refused: `a key has at most ${MAX_SCOPES} scopes` }
  for (const scope of keyScopes) {
    const problem = scope.startsWith('admin:') ? 'is for administrators’ keys only' : scopeProblem(scope)
    if (problem) return { refused: `${scope} ${problem}` }
  }
  return { scopes: [KEYS_CREATE, ...(keyScopes.length > 0 ? keyScopes : [DEFAULT_KEY_SCOPE])] }
}
