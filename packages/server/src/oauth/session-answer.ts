import { signIdToken } from '../authorizations/id-token.ts'
import { appOf, scopesOf } from '../sessions/app-session.ts'
import type { SignedIn } from '../sessions/session.ts'
import type { GrantDeps, TokenAnswer } from './grant.ts'

/** The tokens of an app's session, as its scopes say. */
export function createSessionAnswer(deps: GrantDeps) {
  /**
   * @param nonce of the authorization request
   * @param granted all scopes of the session, where this access token has fewer
   */
  return async function answerOf(
    { user, session }: SignedIn,
    nonce: string | null,
    granted: readonly string[] = session.grant!.scopes,
  ): Promise<TokenAnswer> {
    const app = await appOf(deps.storage.store.apps, session)
    // Scopes that the operator withdrew from the app since are in no new token: services may trust its scopes without
    // introspection.
    const scopes = app ? scopesOf(app, session) : []
    const allowed = { ...session, grant: { ...session.grant!, scopes } }
    const { accessToken, expiresIn, refreshToken } = await deps.sessions.appTokens(user, allowed)
    return {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: expiresIn,
      scope: scopes.join(' '),
      ...(granted.includes('offline_access') && { refresh_token: refreshToken }),
      ...(scopes.includes('openid') && { id_token: await idTokenOf({ user, session: allowed }, nonce) }),
    }
  }

  async function idTokenOf({ user, session }: SignedIn, nonce: string | null): Promise<string> {
    const app = await deps.storage.store.apps.find(session.appId)
    return signIdToken(deps, { user, session, alg: app?.idTokenAlg ?? 'RS256' }, nonce)
  }
}
