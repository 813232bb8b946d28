import { KEY_REFUSAL_CODES } from '../api-keys/api-key.ts'
import { KeywayError } from '../errors.ts'
import { audienceOf, scopesOf } from './form.ts'
import type { GrantDeps, Granted, TokenRequest } from './grant.ts'
import { OAuthError, type OAuthErrorCode } from './oauth-error.ts'

/** OAuth error codes for refusals of the exchange that are not about the key. */
const OTHER_REFUSALS: Partial<Record<string, OAuthErrorCode>> = {
  insufficient_scope: 'invalid_scope',
  invalid_request: 'invalid_target',
}
/** Codes of refusals of a key; unknown keys, and those with another id, get the same one. */
const REFUSALS_OF_KEYS: ReadonlySet<string> = new Set(
  ['invalid_api_key', ...KEY_REFUSAL_CODES].filter(code => !Object.hasOwn(OTHER_REFUSALS, code)),
)

/**
 * Exchanges a key as `POST /auth/agent-token` does, by the same limits and with the same token.
 *
 * @param presented.keyId the id that the key must have
 * @param presented.refusal the error for a key that may not be used
 */
export async function exchangeKey(
  { agentTokens }: Pick<GrantDeps, 'agentTokens'>,
  { form, caller }: TokenRequest,
  presented: { key: string; keyId?: string; refusal: OAuthErrorCode },
): Promise<Granted> {
  const { key, keyId, refusal } = presented
  const bounds = { keyId, scopes: scopesOf(form) }
  try {
    const { token, expiresIn, scopes, limits } = await agentTokens.exchange(
      key,
      audienceOf(form),
      caller,
      bounds,
    )
    const scope = scopes && { scope: scopes.join(' ') }
    return {
      answer: { access_token: token, token_type: 'Bearer', expires_in: expiresIn, ...scope },
      limits,
    }
  } catch (error) {
    throw error instanceof KeywayError ? inOAuthTerms(error, refusal) : error
  }
}

function inOAuthTerms(error: KeywayError, refusal: OAuthErrorCode): KeywayError {
  if (error instanceof OAuthError) return error
  const code = REFUSALS_OF_KEYS.has(error.code) ? refusal : OTHER_REFUSALS[error.code]
  return code ? OAuthError.of(code, error) : error
}
