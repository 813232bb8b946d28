import type { PollRefusal } from '../device-authorizations/device-authorizations.ts'
import type { Grant, GrantDeps } from './grant.ts'
import { OAuthError } from './oauth-error.ts'
import { createSessionAnswer } from './session-answer.ts'

/** Descriptions of the errors of a poll (RFC 8628 section 3.5). */
const DESCRIPTIONS: Record<PollRefusal, string> = {
  authorization_pending: 'Nobody decided yet. Poll again after the interval.',
  slow_down: 'Polled too early. From now on wait five seconds longer.',
  access_denied: 'The person denied the request, or may not sign in any more.',
  expired_token: 'The device code has expired. Ask for a new one.',
  invalid_grant: 'The device code is unknown, was used already, or belongs to another client.',
}

/**
 * The grant of device codes (RFC 8628 section 3.4): issues tokens for an approved code. The built-in client
 * (keyway-cli.ts) may create a key with its tokens.
 */
export function createDeviceCodeGrant(deps: GrantDeps): Grant {
  const answerOf = createSessionAnswer(deps)

  return async request => {
    const app = await deps.clients.app(request)
    const { device_code: deviceCode } = request.form
    if (deviceCode === undefined) throw new OAuthError('invalid_request', 'device_code is required.')
    const outcome = await deps.deviceTokens.poll(app, deviceCode, request.caller)
    if ('refused' in outcome) throw toOAuthError(outcome.refused)
    const answer = await answerOf(outcome, null)
    return { answer: { ...answer, scope: outcome.scopes.join(' ') } }
  }
}

function toOAuthError(error: PollRefusal): OAuthError {
  // An unknown device code counts against the limit of failed guesses of the caller's network, like any unknown
  // secret, although its 256 random bits cannot be guessed.
  const isGuess = error === 'invalid_grant'
  return new OAuthError(error, DESCRIPTIONS[error], 'invalid_request', isGuess ? { isGuess } : {})
}
