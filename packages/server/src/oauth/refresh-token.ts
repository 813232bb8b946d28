import { KeywayError } from '../errors.ts'
import type { Session } from '../sessions/session.ts'
import { audienceOf, type Form, scopesOf } from './form.ts'
import type { Grant, GrantDeps } from './grant.ts'
import { OAuthError } from './oauth-error.ts'
import { createSessionAnswer } from './session-answer.ts'

/**
 * The grant `refresh_token` (RFC 6749 section 6), with the same rotation, reuse detection and safe retries as
 * `POST /auth/refresh`.
 */
export function createRefreshTokenGrant(deps: GrantDeps): Grant {
  const { sessions, clients, publicUrl } = deps
  const answerOf = createSessionAnswer(deps)

  return async request => {
    const { form, caller, retryKey } = request
    const app = await clients.app(request)
    const token = form.refresh_token
    if (token === undefined) throw new OAuthError('invalid_request', 'refresh_token is required.')
    try {
      // The scopes are checked before the rotation, so that a refused request does not use up its token.
      const sessionOfToken = await sessions.ofRefreshToken(token)
      const scopes =
        sessionOfToken && sessionOfToken.appId === app.id ? requestedScopes(sessionOfToken, form) : null
      const { user, session } = await sessions.refreshForApp(token, app.id, retryKey, caller)
      const grant = { ...session.grant!, scopes: scopes ?? session.grant!.scopes }
      return { answer: await answerOf({ user, session: { ...session, grant } }, null, session.grant!.scopes) }
    } catch (error) {
      if (!(error instanceof KeywayError) || !REFUSED_TOKEN_CODES.has(error.code)) throw error
      throw OAuthError.of('invalid_grant', error)
    }
  }

  /**
   * The requested scopes of the access token, at most those that were granted; null if it gets all of them.
   *
   * @throws OAuthError `invalid_scope`, `invalid_target`
   */
  function requestedScopes({ grant }: Session, form: Form): string[] | null {
    const audience = audienceOf(form) ?? null
    if (audience !== null && audience !== (grant?.audience ?? publicUrl))
      throw new OAuthError('invalid_target', 'The refresh token is for another audience.')
    const scopes = scopesOf(form) ?? null
    const excessScope = scopes?.find(scope => !grant?.scopes.includes(scope))
    if (excessScope !== undefined)
      throw new OAuthError('invalid_scope', `The person did not grant the scope ${excessScope}.`)
    return scopes
  }
}

const REFUSED_TOKEN_CODES = new Set<string>(['invalid_refresh_token', 'refresh_token_reused'])
