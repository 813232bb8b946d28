import type { Grant, GrantDeps } from './grant.ts'
import { exchangeKey } from './key-exchange.ts'
import { OAuthError } from './oauth-error.ts'

/** The `subject_token_type` of an API key. */
export const API_KEY_TOKEN_TYPE = 'urn:keyway:token-type:api-key'
const JWT_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:jwt'
const ISSUED_TOKEN_TYPES = [JWT_TOKEN_TYPE, 'urn:ietf:params:oauth:token-type:access_token']

/** Token exchange (RFC 8693) of an API key for an agent token. The key itself is the authentication. */
export function createTokenExchangeGrant(deps: GrantDeps): Grant {
  return async request => {
    const { form } = request
    const {
      subject_token: key,
      subject_token_type: type,
      requested_token_type: requestedType = JWT_TOKEN_TYPE,
    } = form
    if (key === undefined) throw invalidRequest('subject_token is required: an API key.')
    if (type !== API_KEY_TOKEN_TYPE) throw invalidRequest(`subject_token_type must be ${API_KEY_TOKEN_TYPE}.`)
    if (!ISSUED_TOKEN_TYPES.includes(requestedType))
      throw invalidRequest(`requested_token_type must be ${JWT_TOKEN_TYPE}.`)
    if (form.actor_token !== undefined || form.actor_token_type !== undefined)
      throw invalidRequest('Delegation with actor_token is not supported.')
    const result = await exchangeKey(deps, request, { key, refusal: 'invalid_grant' })
    return { ...result, answer: { ...result.answer, issued_token_type: JWT_TOKEN_TYPE } }
  }
}

function invalidRequest(description: string): OAuthError {
  return new OAuthError('invalid_request', description)
}
