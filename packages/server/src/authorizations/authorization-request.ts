import type { App } from '../apps/app.ts'
import { acceptsRedirectUri } from '../apps/redirect-uri.ts'
import { isCodeChallenge } from './pkce.ts'
import { grantableScopes } from './scopes.ts'

/** Maximum length of the value of one parameter, in characters. */
const MAX_VALUE_LENGTH = 2048
/**
 * Maximum length of all parameters but `request_uri` together, as JSON, in characters: a browser keeps them in a cookie
 * while the person signs in.
 */
export const MAX_REQUEST_LENGTH = 2600

/** Values of the parameter `prompt` (OpenID Connect Core section 3.1.2.1). */
export type Prompt = 'none' | 'login' | 'consent' | 'select_account'
const PROMPTS: readonly string[] = ['none', 'login', 'consent', 'select_account'] satisfies Prompt[]

/** The parameters of a request by name. Each was sent once and is not empty. */
export type RequestParams = Readonly<Record<string, string>>

/** The parameters that this service reads; others are ignored (RFC 6749 section 3.1). */
const PARAMETERS = [
  'client_id',
  'code_challenge',
  'code_challenge_method',
  'id_token_hint',
  'login_hint',
  'max_age',
  'nonce',
  'prompt',
  'redirect_uri',
  'request',
  'request_uri',
  'resource',
  'audience',
  'response_mode',
  'response_type',
  'scope',
  'state',
  'ui_locales',
]

/** A valid authorization request of a registered app. */
export interface AuthorizationRequest {
  app: App
  /** The URI to which the browser is redirected with the answer. */
  redirectUri: string
  /** Whether the request itself named the redirect URI; a token request without PKCE must then repeat it. */
  namesRedirectUri: boolean
  state: string | null
  scopes: string[]
  /** The requested audience (RFC 8707); null for this service. */
  audience: string | null
  nonce: string | null
  codeChallenge: string | null
  prompts: readonly Prompt[]
  /** Maximum age of the sign-in that the app accepts, in seconds; null for any. */
  maxAge: number | null
  loginHint: string | null
  idTokenHint: string | null
}

/** An error for the client: an error code of OAuth or OpenID Connect, and one sentence. */
export interface Refusal {
  error: string
  description: string
}

export type RequestOrRefusal =
  | { request: AuthorizationRequest }
  /** The error is for the app, and sent to its redirect URI. */
  | { refusal: Refusal; redirectUri: string; state: string | null }

/** The known parameters of a query or form, or a refusal if one is repeated, or one or all together are too long. */
export function readParams(query: URLSearchParams): { params: RequestParams } | { refusal: Refusal } {
  const presentNames = PARAMETERS.filter(name => query.getAll(name).some(Boolean))
  const repeatedName = presentNames.find(name => query.getAll(name).length > 1)
  if (repeatedName === 'resource') return refused('invalid_target', 'Ask for one resource at a time.')
  if (repeatedName) return refused('invalid_request', `The parameter ${repeatedName} must be sent once.`)
  const params = Object.fromEntries(presentNames.map(name => [name, query.get(name)!]))
  const overlongName = presentNames.find(
    name => name !== 'request_uri' && params[name]!.length > MAX_VALUE_LENGTH,
  )
  if (overlongName)
    return refused(
      'invalid_request',
      `The parameter ${overlongName} is longer than ${MAX_VALUE_LENGTH} characters.`,
    )
  const { request_uri: _, ...storedParams } = params
  if (JSON.stringify(storedParams).length > MAX_REQUEST_LENGTH)
    return refused(
      'invalid_request',
      `The parameters are longer than ${MAX_REQUEST_LENGTH} characters together.`,
    )
  return { params }
}

/**
 * The redirect URI of a request, if it is registered for the app. Null: any error must be shown to the person instead,
 * since redirecting to an unregistered URI would make this service an open redirector (RFC 9700 section 4.11).
 */
export function redirectUriOf(app: App, params: RequestParams): string | null {
  const { redirect_uri: requested } = params
  // A request may omit it if exactly one is registered (RFC 6749 section 3.1.2.3).
  if (requested === undefined) return app.redirectUris.length === 1 ? app.redirectUris[0]! : null
  return acceptsRedirectUri(app.redirectUris, requested) ? requested : null
}

/** Reads a request. @param redirectUri a URI that `redirectUriOf` found to be registered for the app */
export function readRequest(app: App, redirectUri: string, params: RequestParams): RequestOrRefusal {
  const state = params.state ?? null
  const result = validateParams(app, params)
  if ('refusal' in result) return { ...result, redirectUri, state }
  return {
    request: { ...result, app, redirectUri, state, namesRedirectUri: params.redirect_uri !== undefined },
  }
}

type ValidatedParams = Omit<AuthorizationRequest, 'app' | 'redirectUri' | 'namesRedirectUri' | 'state'>

function validateParams(app: App, params: RequestParams): ValidatedParams | { refusal: Refusal } {
  const { nonce = null, resource, audience = resource ?? null } = params
  if (params.request) return refused('request_not_supported', 'Request objects are not supported.')
  if (params.request_uri) return refused('request_uri_not_supported', 'Push the request to /oauth/par first.')
  if (params.response_type !== 'code')
    return refused(
      params.response_type ? 'unsupported_response_type' : 'invalid_request',
      'response_type must be "code".',
    )
  if ((params.response_mode ?? 'query') !== 'query')
    return refused('invalid_request', 'response_mode must be "query" or left out.')
  const scopeResult = grantableScopes(app, params.scope ?? '')
  if ('refused' in scopeResult) return refused('invalid_scope', `${scopeResult.refused}.`)
  if (resource !== undefined && audience !== resource)
    return refused('invalid_target', 'audience and resource must name the same audience.')
  const prompts = [...new Set((params.prompt ?? '').split(' ').filter(Boolean))]
  if (prompts.some(prompt => !PROMPTS.includes(prompt)) || (prompts.includes('none') && prompts.length > 1))
    return refused(
      'invalid_request',
      'prompt must be "none", or some of "login", "consent", "select_account".',
    )
  if (params.max_age !== undefined && !/^\d{1,9}$/.test(params.max_age))
    return refused('invalid_request', 'max_age must be a number of seconds.')
  const refusalByPkce = pkceRefusal(app, params, scopeResult.scopes)
  if (refusalByPkce) return refusalByPkce
  return {
    scopes: scopeResult.scopes,
    audience,
    nonce,
    codeChallenge: params.code_challenge ?? null,
    prompts: prompts as Prompt[],
    maxAge: params.max_age === undefined ? null : Number(params.max_age),
    loginHint: params.login_hint ?? null,
    idTokenHint: params.id_token_hint ?? null,
  }
}

/**
 * The refusal of a request without a valid PKCE challenge by S256; null if the request is accepted. Older confidential
 * clients may send a `nonce` instead, which protects them equally if they check it (RFC 9700 section 2.1.1).
 */
function pkceRefusal(app: App, params: RequestParams, scopes: string[]): { refusal: Refusal } | null {
  const { code_challenge: challenge, code_challenge_method: method, nonce } = params
  if (challenge === undefined) {
    if (method !== undefined)
      return refused('invalid_request', 'code_challenge_method needs a code_challenge.')
    if (!app.isPublic && !app.requirePkce && nonce !== undefined && scopes.includes('openid')) return null
    return refused(
      'invalid_request',
      'PKCE is required: send a code_challenge with code_challenge_method=S256.',
    )
  }
  if (method !== 'S256') return refused('invalid_request', 'code_challenge_method must be "S256".')
  if (!isCodeChallenge(challenge))
    return refused('invalid_request', 'code_challenge must be the base64url of a SHA-256: 43 characters.')
  return null
}

function refused(error: string, description: string): { refusal: Refusal } {
  return { refusal: { error, description } }
}
