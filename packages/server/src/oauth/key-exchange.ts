import { KEY_REFUSAL_CODES } from '../api-keys/api-key.ts'
import { KeywayError } from '../errors.ts'
import { audienceOf, scopesOf } from './form.ts'
import type { GrantDeps, GrantResult, TokenRequest } from './grant.ts'
import { OAuthError, type OAuthErrorCode } from './oauth-error.ts'

/** The OAuth error codes of refusals whose reason is not the key. */
const OTHER_REFUSALS: Partial<Record<string, OAuthErrorCode>> = {
  insufficient_scope: 'invalid_scope',
  invalid_request: 'invalid_target',
}
/** The refusals whose reason is the key. All get the OAuth error code that the caller of `exchangeKey` passes. */
const KEY_REFUSALS: ReadonlySet<string> = new Set(
  ['invalid_api_key', ...KEY_REFUSAL_CODES].filter(code => !Object.hasOwn(OTHER_REFUSALS, code)),
)

/**
 * Exchanges a key like `POST /auth/agent-token`, under the same limits, for the same token.
 *
 * @param credential.keyId the id that the key must have
 * @param credential.refusal the error for a key that may not be used
 */
export async function exchangeKey(
  { agentTokens }: Pick<GrantDeps, 'agentTokens'>,
  { form, caller }: TokenRequest,
  credential: { key: string; keyId?: string; refusal: OAuthErrorCode },
): Promise<GrantResult> {
  const { key, keyId, refusal } = credential
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
    throw error instanceof KeywayError ? toOAuthError(error, refusal) : error
  }
}

function toOAuthError(error: KeywayError, refusal: OAuthErrorCode): KeywayError {
  if (error instanceof OAuthError) return error
  const code = KEY_REFUSALS.has(error.code) ? refusal : OTHER_REFUSALS[error.code]
  return code ? OAuthError.of(code, error) : error
}
