import { signIdToken } from '../authorizations/id-token.ts'
import { KeywayError } from '../errors.ts'
import { appOf, scopesOf } from '../sessions/app-session.ts'
import type { Session, SignedIn } from '../sessions/session.ts'
import type { SessionTokens } from '../sessions/sessions.ts'
import type { User } from '../users/user.ts'
import type { GrantDeps, TokenAnswer } from './grant.ts'
import { invalidClient, OAuthError } from './oauth-error.ts'

/** Creates a function that builds the token response for an app's session, according to its scopes. */
export function createSessionAnswer(deps: GrantDeps) {
  /**
   * @param nonce the nonce of the authorization request; null if it had none, after a refresh, and for a device
   * @param sessionScopes all scopes of the session, if the access token gets only some of them
   * @throws OAuthError `invalid_client` if the app was removed meanwhile, `invalid_grant` if the app to which the
   *   session's audience belongs was removed
   */
  return async function answerOf(
    { user, session }: SignedIn,
    nonce: string | null,
    sessionScopes: readonly string[] = session.grant!.scopes,
  ): Promise<TokenAnswer> {
    const app = await appOf(deps.storage.store.apps, session)
    if (!app) throw invalidClient('No client has this id and secret.')
    // New tokens lack scopes that the operator has withdrawn from the app, since services may trust a token's scopes
    // without introspection.
    const scopes = scopesOf(app, session)
    const sessionWithAllowedScopes = { ...session, grant: { ...session.grant!, scopes } }
    const { accessToken, expiresIn, refreshToken } = await tokensOf(user, sessionWithAllowedScopes)
    return {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: expiresIn,
      scope: scopes.join(' '),
      ...(sessionScopes.includes('offline_access') && { refresh_token: refreshToken }),
      ...(scopes.includes('openid') && {
        id_token: await idTokenOf({ user, session: sessionWithAllowedScopes }, nonce),
      }),
    }
  }

  async function tokensOf(user: User, session: Session): Promise<SessionTokens> {
    try {
      return await deps.sessions.appTokens(user, session)
    } catch (error) {
      if (!(error instanceof KeywayError) || error.code !== 'invalid_refresh_token') throw error
      throw new OAuthError('invalid_grant', 'The app or the audience of the grant was removed.')
    }
  }

  async function idTokenOf({ user, session }: SignedIn, nonce: string | null): Promise<string> {
    const app = await deps.storage.store.apps.find(session.appId)
    return signIdToken(deps, { user, session, alg: app?.idTokenAlg ?? 'RS256' }, nonce)
  }
}
