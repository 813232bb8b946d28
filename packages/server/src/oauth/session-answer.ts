import { signIdToken } from '../authorizations/id-token.ts'
import { appOf, scopesOf } from '../sessions/app-session.ts'
import type { SignedIn } from '../sessions/session.ts'
import type { GrantDeps, TokenAnswer } from './grant.ts'

/** Creates a function that builds the token response for an app's session, according to its scopes. */
export function createSessionAnswer(deps: GrantDeps) {
  /**
   * @param nonce the nonce of the authorization request; null if it had none, after a refresh, and for a device
   * @param sessionScopes all scopes of the session, if the access token gets only some of them
   */
  return async function answerOf(
    { user, session }: SignedIn,
    nonce: string | null,
    sessionScopes: readonly string[] = session.grant!.scopes,
  ): Promise<TokenAnswer> {
    const app = await appOf(deps.storage.store.apps, session)
    // New tokens lack scopes that the operator has withdrawn from the app, since services may trust a token's scopes
    // without introspection.
    const scopes = app ? scopesOf(app, session) : []
    const allowedSession = { ...session, grant: { ...session.grant!, scopes } }
    const { accessToken, expiresIn, refreshToken } = await deps.sessions.appTokens(user, allowedSession)
    return {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: expiresIn,
      scope: scopes.join(' '),
      ...(sessionScopes.includes('offline_access') && { refresh_token: refreshToken }),
      ...(scopes.includes('openid') && {
        id_token: await idTokenOf({ user, session: allowedSession }, nonce),
      }),
    }
  }

  async function idTokenOf({ user, session }: SignedIn, nonce: string | null): Promise<string> {
    const app = await deps.storage.store.apps.find(session.appId)
    return signIdToken(deps, { user, session, alg: app?.idTokenAlg ?? 'RS256' }, nonce)
  }
}
