import { MAX_SCOPES } from '@keyway/sdk/protocol'
import { type App, mayRequestScope } from '../apps/app.ts'

/** Standard scopes for claims that no account has; ignored, as OpenID Connect recommends (Core section 3.1.2.1). */
const IGNORED_SCOPES = ['address', 'phone']

/** The syntax of all scopes, including those that operators define. */
const SCOPE_SYNTAX = /^[a-z][a-z0-9._:-]{0,63}$/

/**
 * The scopes that the app requests, without ignored ones. If the app may not ask for one of them, or asks for more than
 * `MAX_SCOPES`, `refused` says so.
 *
 * @param text RFC 6749 section 3.3: separated by spaces
 */
export function grantableScopes(
  app: Pick<App, 'scopes'>,
  text: string,
): { scopes: string[] } | { refused: string } {
  const requestedScopes = [
    ...new Set(text.split(' ').filter(scope => scope !== '' && !IGNORED_SCOPES.includes(scope))),
  ]
  if (requestedScopes.length > MAX_SCOPES)
    return { refused: `An app may ask for at most ${MAX_SCOPES} scopes at once` }
  const refusedScope = requestedScopes.find(scope => !mayRequestScope(app, scope))
  return refusedScope === undefined ? { scopes: requestedScopes } : { refused: refusalOf(refusedScope) }
}

/**
 * The message about a refused scope. Text without the syntax of a scope may be a credential in the wrong field, so it
 * is not repeated.
 */
function refusalOf(scope: string): string {
  return `The app may not ask for ${SCOPE_SYNTAX.test(scope) ? `the scope "${scope}"` : 'this scope'}`
}
