import { type FieldError, MAX_SCOPES, RESERVED_SCOPE_PREFIXES, scopeProblem } from '@keyway/sdk/protocol'
import { isLoopbackHost } from '../network.ts'
import { SIGNING_ALGS, type SigningAlg } from '../signing-keys/signing-key.ts'
import { type App, type AppSettings, PERSONAL_SCOPES } from './app.ts'

export const MAX_APP_NAME_LENGTH = 100
const MAX_URL_LENGTH = 2048
/** Maximum number of URIs in each of the lists `redirectUris` and `logoutUris`. */
export const MAX_APP_URIS = 32
/** Reserved scopes that an app may ask people for only if the operator gave them to it. */
export const OPERATOR_GRANTED_SCOPES: readonly string[] = ['account:write', 'keys:read', 'keys:write']

type AppToCheck = Omit<App, 'createdAt' | 'coversFrom'>

/** The errors in an app's settings, under the field names that clients and operators use; empty if there are none. */
export function problemsOf(app: AppToCheck): FieldError[] {
  return [...problemsOfValues(app), ...problemsOfCombinations(app)]
}

function problemsOfValues(app: AppSettings): FieldError[] {
  return [
    ...problem('name', !isValidName(app.name), 'must be 1 to 100 characters without control characters'),
    ...problem(
      'audience',
      app.audience !== null && !isValidAudience(app.audience),
      'must be an http or https URL without credentials and fragment, for example "https://shop.example.com"',
    ),
    ...problem(
      'verify_url',
      app.verifyUrl !== null && !isTlsOrLoopbackUrl(app.verifyUrl),
      'must be an https URL (http on loopback only), for example "https://shop.example.com/verify"',
    ),
    ...app.redirectUris.flatMap(uri => uriProblem('redirect_uris', uri)),
    ...app.logoutUris.flatMap(uri => uriProblem('logout_uris', uri)),
    ...(['redirectUris', 'logoutUris'] as const).flatMap(list =>
      problem(
        list === 'redirectUris' ? 'redirect_uris' : 'logout_uris',
        app[list].length > MAX_APP_URIS || new Set(app[list]).size < app[list].length,
        `must be at most ${MAX_APP_URIS} different URIs`,
      ),
    ),
    ...problem(
      'backchannel_logout_uri',
      app.backchannelLogoutUri !== null && !isTlsOrLoopbackUrl(app.backchannelLogoutUri),
      'must be an https URL (http on loopback only), for example "https://shop.example.com/logout"',
    ),
    ...problem(
      'jwks_uri',
      app.jwksUri !== null && !isTlsOrLoopbackUrl(app.jwksUri),
      'must be an https URL (http on loopback only), for example "https://shop.example.com/jwks.json"',
    ),
    ...problem('token_alg', !isSigningAlg(app.tokenAlg), `must be one of ${SIGNING_ALGS.join(', ')}`),
    ...problem('id_token_alg', !isSigningAlg(app.idTokenAlg), `must be one of ${SIGNING_ALGS.join(', ')}`),
    ...app.scopes.flatMap(scopeProblems),
    ...problem('scopes', app.scopes.length > MAX_SCOPES, `must be at most ${MAX_SCOPES} scopes`),
  ]
}

function problemsOfCombinations(app: AppToCheck): FieldError[] {
  const nativeUri = app.redirectUris.find(uri => !uri.startsWith('https:'))
  return [
    ...problem(
      'jwks_uri',
      app.isPublic && app.jwksUri !== null,
      'is for confidential clients: a public one cannot keep a private key',
    ),
    ...problem(
      'redirect_uris',
      !app.isPublic && app.redirectUris.some(isPrivateUse),
      'with a scheme of its own need a public client: where such an app runs, no secret can be kept',
    ),
    // Any program on the person's machine may register such a URI, and would get the code without the person being
    // asked (RFC 8252 section 8.6).
    ...problem(
      app.firstParty ? 'redirect_uris' : 'trusted',
      app.isPublic && (app.trusted || app.firstParty) && nativeUri !== undefined,
      `is not for a public client without consent and with the redirect URI ${JSON.stringify(nativeUri)}, which other programs may take: the person must be asked`,
    ),
  ]
}

function problem(field: string, isWrong: boolean, message: string): FieldError[] {
  return isWrong ? [{ field, message }] : []
}

/**
 * The error if the URI is not allowed: it must be https, http on loopback, or have a private-use scheme with a period
 * (RFC 8252 section 7.1). It must be in the URL standard's normal form, since URIs are compared as text, so that
 * another spelling would never match.
 */
function uriProblem(field: string, text: string): FieldError[] {
  const url = parseUri(text)
  const isAllowed =
    url !== null &&
    (url.protocol === 'https:' ||
      (url.protocol === 'http:' && isLoopbackHost(url.hostname)) ||
      isPrivateUse(text))
  const quoted = JSON.stringify(text.slice(0, MAX_URL_LENGTH))
  if (!isAllowed)
    return problem(
      field,
      true,
      `must not contain ${quoted}: write each as https://shop.example.com/callback, http://127.0.0.1/callback or com.example.shop:/callback, without credentials, fragment and wildcards`,
    )
  const isNormalForm = url.href === text || (url.pathname === '/' && url.href === `${text}/`)
  return problem(field, !isNormalForm, `must not contain ${quoted}: write it as ${url.href}`)
}

function isPrivateUse(uri: string): boolean {
  return /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:\//.test(uri)
}

function scopeProblems(scope: string): FieldError[] {
  if ((PERSONAL_SCOPES as readonly string[]).includes(scope))
    return problem('scopes', true, `need not contain ${scope}: every app may ask for it`)
  const isReserved = RESERVED_SCOPE_PREFIXES.some(prefix => scope.startsWith(prefix))
  if (isReserved && !OPERATOR_GRANTED_SCOPES.includes(scope))
    return problem(
      'scopes',
      true,
      `must not contain ${JSON.stringify(scope)}: of the reserved scopes, apps may be given ${OPERATOR_GRANTED_SCOPES.join(', ')}`,
    )
  const message = scopeProblem(scope)
  return message === null ? [] : [{ field: 'scopes', message }]
}

export function isSigningAlg(text: string): text is SigningAlg {
  return (SIGNING_ALGS as readonly string[]).includes(text)
}

function isValidName(name: string): boolean {
  const isClean = name.isWellFormed() && !/\p{Cc}/u.test(name)
  return isClean && name.trim() !== '' && [...name].length <= MAX_APP_NAME_LENGTH
}

/** An audience needs no normal form, unlike other URLs: requested audiences are compared with it as text. */
function isValidAudience(audience: string): boolean {
  return isHttp(parseUri(audience))
}

/**
 * Whether the URL is https, or http on loopback: required if it receives live tokens or serves a client's public keys.
 */
function isTlsOrLoopbackUrl(text: string): boolean {
  const url = parseUri(text)
  return isHttp(url) && (url!.protocol === 'https:' || isLoopbackHost(url!.hostname))
}

function isHttp(url: URL | null): boolean {
  return url !== null && /^https?:$/.test(url.protocol)
}

function parseUri(text: string): URL | null {
  if (text.length > MAX_URL_LENGTH || /[\s\p{Cc}*\\]/u.test(text)) return null
  const url = URL.parse(text)
  return !url || url.username || url.password || url.hash || text.includes('#') ? null : url
}
