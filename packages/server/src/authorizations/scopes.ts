import { MAX_SCOPES } from '@keyway/sdk/protocol'
import { type App, mayRequestScope } from '../apps/app.ts'

/** Standard scopes of claims that no account has; they are left out, as OpenID Connect asks (Core section 3.1.2.1). */
const LEFT_OUT = ['address', 'phone']

/** The syntax of all scopes, those of operators too. */
const SCOPE = /^[a-z][a-z0-9._:-]{0,63}$/

/**
 * The scopes that a person may grant to the app, of those it asks for; `refused` says which one it may not ask for.
 *
 * @param text RFC 6749 section 3.3: separated by spaces
 */
export function grantableScopes(
  app: Pick<App, 'scopes'>,
  text: string,
): { scopes: string[] } | { refused: string } {
  const asked = [...new Set(text.split(' ').filter(scope => scope !== '' && !LEFT_OUT.includes(scope)))]
  const refused = asked[MAX_SCOPES] ?? asked.find(scope => !mayRequestScope(app, scope))
  return refused === undefined ? { scopes: asked } : { refused: refusalOf(refused) }
}

/**
 * The message about a refused scope. Text without the syntax of a scope may be a credential in the wrong field, so it
 * is not repeated.
 */
function refusalOf(scope: string): string {
  return `The app may not ask for ${SCOPE.test(scope) ? `the scope "${scope}"` : 'this scope'}`
}
