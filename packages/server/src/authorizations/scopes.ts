import { MAX_SCOPES } from '@keyway/sdk/protocol'
import { type App, mayAskFor } from '../apps/app.ts'

/** Standard scopes of claims that no account has; they are left out, as OpenID Connect asks (Core section 3.1.2.1). */
const LEFT_OUT = ['address', 'phone']

/**
 * The scopes that a person may grant to the app, of those it asks for; `refused` is the first one that it may not ask
 * for.
 *
 * @param text RFC 6749 section 3.3: separated by spaces
 */
export function grantableScopes(
  app: Pick<App, 'scopes'>,
  text: string,
): { scopes: string[] } | { refused: string } {
  const asked = [...new Set(text.split(' ').filter(scope => scope !== '' && !LEFT_OUT.includes(scope)))]
  const refused = asked[MAX_SCOPES] ?? asked.find(scope => !mayAskFor(app, scope))
  return refused === undefined ? { scopes: asked } : { refused }
}
