import { type AppSettings, DEFAULT_APP_SETTINGS } from '../apps/app.ts'
import { isSigningAlg, problemsOf } from '../apps/app-settings.ts'
import { SIGNING_ALGS, type SigningAlg } from '../signing-keys/signing-key.ts'

/** The validated metadata of a client that describes itself (RFC 7591 section 2), or why it is refused. */
export type MetadataOrError =
  | { settings: AppSettings; authMethod: AuthMethod }
  | { error: 'invalid_redirect_uri' | 'invalid_client_metadata'; description: string }

export type AuthMethod = 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'

const GRANT_TYPES = ['authorization_code', 'refresh_token']
/** Maximum length of the name that is shown for a client, which nobody has verified. */
const MAX_NAME_LENGTH = 60
/** Maximum length of all redirect URIs of one client: nodes read the URIs of all public clients, for CORS. */
const MAX_REDIRECT_CHARACTERS = 2048

/**
 * Validates the metadata that a client gives about itself. Such a client gets no scopes that the operator reserves, and
 * people are always asked for their consent.
 * @param methods the authentication methods that the client may use; the first is the default
 */
export function readClientMetadata(value: unknown, methods: readonly AuthMethod[]): MetadataOrError {
  const metadata = isObject(value) ? value : {}
  const { redirect_uris: redirectUris, post_logout_redirect_uris: logoutUris = [] } = metadata
  if (!isTextList(redirectUris) || redirectUris.length === 0)
    return { error: 'invalid_redirect_uri', description: 'redirect_uris must be a list of at least one URI.' }
  if (redirectUris.join('').length > MAX_REDIRECT_CHARACTERS)
    return {
      error: 'invalid_redirect_uri',
      description: `redirect_uris must have at most ${MAX_REDIRECT_CHARACTERS} characters together.`,
    }
  const { token_endpoint_auth_method: requestedMethod = methods[0] } = metadata
  const authMethod = methods.find(method => method === requestedMethod)
  if (!authMethod) return refused(`token_endpoint_auth_method must be one of ${methods.join(', ')}.`)
  const { grant_types: grants = GRANT_TYPES, response_types: responses = ['code'] } = metadata
  if (!isTextList(grants) || grants.some(grant => !GRANT_TYPES.includes(grant)))
    return refused(`grant_types must be of ${GRANT_TYPES.join(', ')}.`)
  if (!isTextList(responses) || responses.some(type => type !== 'code'))
    return refused('response_types must be ["code"].')
  if (!isTextList(logoutUris)) return refused('post_logout_redirect_uris must be a list of URIs.')
  const jwksUri = authMethod === 'private_key_jwt' ? textOf(metadata.jwks_uri) : null
  if (authMethod === 'private_key_jwt' && jwksUri === null)
    return refused('private_key_jwt needs a jwks_uri; keys in the metadata are not supported.')
  const { id_token_signed_response_alg: idTokenAlg = DEFAULT_APP_SETTINGS.idTokenAlg } = metadata
  if (!isSigningAlg(String(idTokenAlg)))
    return refused(`id_token_signed_response_alg must be one of ${SIGNING_ALGS.join(', ')}.`)
  const settings: AppSettings = {
    ...DEFAULT_APP_SETTINGS,
    name: nameOf(metadata.client_name, redirectUris[0]!),
    redirectUris,
    logoutUris,
    backchannelLogoutUri: textOf(metadata.backchannel_logout_uri),
    jwksUri,
    idTokenAlg: idTokenAlg as SigningAlg,
    isPublic: authMethod === 'none',
    requirePkce: true,
  }
  const [problem] = problemsOf({ ...settings, id: 'client', firstParty: false })
  if (!problem) return { settings, authMethod }
  const description = `${problem.field} ${problem.message}.`
  return problem.field === 'redirect_uris'
    ? { error: 'invalid_redirect_uri', description }
    : refused(description)
}

/** The name to show, without characters that could make it look like another text on the consent page. */
function nameOf(name: unknown, redirectUri: string): string {
  const cleanName = typeof name === 'string' ? name.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '').trim() : ''
  const shortName = [...cleanName].slice(0, MAX_NAME_LENGTH).join('')
  return shortName || URL.parse(redirectUri)?.host.slice(0, MAX_NAME_LENGTH) || 'App'
}

function refused(description: string): MetadataOrError {
  return { error: 'invalid_client_metadata', description }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(each => typeof each === 'string')
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
