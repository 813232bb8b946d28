import { audienceOf } from './form.ts'
import type { Grant, GrantDeps } from './grant.ts'
import { OAuthError, type OAuthErrorCode } from './oauth-error.ts'
import { createSessionAnswer } from './session-answer.ts'

/** The grant `authorization_code` (RFC 6749 section 4.1.3, OpenID Connect Core section 3.1.3). */
export function createAuthorizationCodeGrant(deps: GrantDeps): Grant {
  const answerOf = createSessionAnswer(deps)

  return async request => {
    const { form, caller } = request
    const app = await deps.clients.app(request)
    const { code, redirect_uri: redirectUri = null, code_verifier: verifier = null } = form
    if (code === undefined) throw new OAuthError('invalid_request', 'code is required.')
    const { redeem } = await deps.authorizations()
    const audience = audienceOf(form) ?? null
    const outcome = await redeem({ code, app, redirectUri, verifier, audience }, caller)
    if ('refusal' in outcome) {
      const { error, description } = outcome.refusal
      throw new OAuthError(error as OAuthErrorCode, description)
    }
    return { answer: await answerOf(outcome, outcome.nonce) }
  }
}
