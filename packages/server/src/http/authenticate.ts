import type { IncomingMessage } from 'node:http'
import type { KnownScope } from '@keyway/sdk/protocol'
import { API_KEY_PREFIX, type OwnedApiKey } from '../api-keys/api-key.ts'
import { type App, isSelfDescribed } from '../apps/app.ts'
import type { Clock } from '../clock.ts'
import { KEYS_CREATE } from '../device-authorizations/keyway-cli.ts'
import { invalidRequest, KeywayError, type RateLimitState } from '../errors.ts'
import type { Caller } from '../network.ts'
import type { HeaderCredentials } from '../oauth/client-authentication.ts'
import type { Authenticated, Session } from '../sessions/session.ts'
import { assertKeyMayAdminister, assertMayAdminister, isAdministrative } from './administrator.ts'
import type { HttpPorts } from './http-ports.ts'

/**
 * Who may call a route:
 * - `public`: anyone.
 * - `app`: an app that the operator registered, by its id and secret.
 * - `owner`: the owner, by a session or by a key without scopes.
 * - `session`: only a signed-in person, for calls that create credentials.
 * - `keys:create`: a signed-in person, or an app with this scope.
 * - a scope: the owner, or a key or an app's access token with the scope. Scopes that begin with `admin:` are for
 *   administrators and their keys, `admin:read` also for a signed-in person with the role `support`; never for apps.
 * - `admin:session`: only a signed-in administrator, for calls that grant rights.
 */
export type Access =
  | 'public'
  | 'app'
  | 'owner'
  | 'session'
  | 'admin:session'
  | typeof KEYS_CREATE
  | KnownScope

/** The kinds of access that need a user's credential. */
type UserAccess = Exclude<Access, 'public' | 'app'>

export interface Owner {
  userId: string
  /** The API key that authenticated the call; null if a token did. */
  keyId: string | null
  /** The session of a person who signed in; null if an API key or an app's access token authenticated the call. */
  session: Session | null
  /** The session of an app's access token; absent for other callers. */
  appSession?: Session
  /** The state of the key's rate limits; absent without a key or limits. */
  limits?: readonly RateLimitState[]
}

export type PrincipalOf<A extends Access> = A extends 'public'
  ? null
  : A extends 'app'
    ? App
    : A extends 'session' | 'admin:session'
      ? Owner & { session: Session }
      : A extends typeof KEYS_CREATE
        ? Owner & ({ session: Session } | { session: null; appSession: Session })
        : Owner

export type Principal = PrincipalOf<Access>

export type Authenticate = (access: Access, incoming: IncomingMessage, caller: Caller) => Promise<Principal>

type AuthenticateDeps = Pick<
  HttpPorts,
  'sessions' | 'apiKeys' | 'agentTokens' | 'apps' | 'limiter' | 'users'
> & {
  clock: Clock
}

/** Authenticates calls by the Authorization header only; never by a cookie, the query or the body. */
export function createAuthenticate({
  sessions,
  apiKeys,
  agentTokens,
  apps,
  limiter,
  users,
  clock,
}: AuthenticateDeps): Authenticate {
  return async (access, incoming, caller) => {
    if (access === 'public') return null
    if (access === 'app') return await authenticateApp(parseAuthorization(incoming))
    const token = bearerToken(incoming)
    if (token.startsWith(API_KEY_PREFIX)) return await authenticateKey(token, access, caller)
    return apiKeys.mayBeKey(token)
      ? await authenticateImported(token, access, caller)
      : await authenticateSession(token, access)
  }

  async function authenticateSession(token: string, access: UserAccess): Promise<Owner> {
    const { user, session, scopes } = await authenticateToken(token)
    if (scopes === null) {
      if (isAdministrative(access)) assertMayAdminister(access, user, session, clock.now())
      return { userId: user.id, keyId: null, session }
    }
    assertAppMayAccess(scopes, access)
    return { userId: user.id, keyId: null, session: null, appSession: session }
  }

  async function authenticateToken(token: string): Promise<Authenticated> {
    try {
      return await sessions.authenticate(token)
    } catch (error) {
      const isRefused = error instanceof KeywayError && error.code === 'invalid_token'
      if (isRefused && (await agentTokens.verify(token))) {
        throw sessionRequired('An agent token opens only the hub. Send an access token or an API key.')
      }
      throw error
    }
  }

  async function authenticateKey(key: string, access: UserAccess, caller: Caller): Promise<Owner> {
    const scope = isKeyScope(access) ? access : undefined
    let limits: readonly RateLimitState[] | undefined
    const { userId, id } = await apiKeys.authenticate(key, caller, {
      scope,
      async accept(apiKey: OwnedApiKey) {
        assertKeyMayAccess(apiKey, access)
        if (isAdministrative(access)) assertKeyMayAdminister(await users.get(apiKey.userId))
        limits = (await limiter.take(apiKey)) ?? undefined
      },
    })
    return { userId, keyId: id, session: null, limits }
  }

  /**
   * Authenticates a credential that may be an imported key. If it is none, the error is that of an invalid access
   * token, and counts as a failed guess.
   */
  async function authenticateImported(token: string, access: UserAccess, caller: Caller): Promise<Owner> {
    try {
      return await authenticateKey(token, access, caller)
    } catch (error) {
      if (!(error instanceof KeywayError) || error.code !== 'invalid_api_key') throw error
      throw new KeywayError('invalid_token', 'The access token is not valid, or its session has ended.', {
        isGuess: true,
      })
    }
  }

  async function authenticateApp(credential: Credential | null): Promise<App> {
    const idAndSecret = credential?.scheme === 'basic' ? parseBasic(credential.value) : null
    // Anybody may register a client, so a self-registered one gets none of the rights of apps that the operator
    // registered.
    const isRegisteredByOperator = idAndSecret !== null && !isSelfDescribed(idAndSecret.id)
    const app = isRegisteredByOperator ? await apps.authenticate(idAndSecret.id, idAndSecret.secret) : null
    if (app) return app
    const detail = credential
      ? 'No registered app has this id and secret.'
      : "Send the app's id and secret: Authorization: Basic base64(id:secret)."
    throw new KeywayError('authentication_required', detail)
  }
}

/** Whether this kind of access is a scope that a key may have: `keys:create` is a scope of apps only. */
function isKeyScope(access: UserAccess): access is KnownScope {
  return access !== 'session' && access !== 'owner' && access !== KEYS_CREATE && access !== 'admin:session'
}

/**
 * Refuses a key where no scope gives access: no key may create credentials or grant rights, and `owner` needs a key
 * without scopes.
 */
function assertKeyMayAccess({ scopes }: Pick<OwnedApiKey, 'scopes'>, access: Access): void {
  if (access === 'session' || access === KEYS_CREATE) {
    throw sessionRequired('Only a signed-in person may do this. Send an access token instead of an API key.')
  }
  if (access === 'admin:session') {
    throw sessionRequired(
      'What gives rights needs a signed-in administrator. Send an access token, or use the keyway command.',
    )
  }
  if (access === 'owner' && scopes !== null) {
    const detail = 'No scope grants this. Use a key without scopes, or sign in.'
    throw new KeywayError('insufficient_scope', detail)
  }
}

/** Refuses an app's access token whose scopes do not allow this access (RFC 6750 section 3.1). */
function assertAppMayAccess(scopes: readonly string[], access: UserAccess): void {
  if (access === 'session' || (access === KEYS_CREATE && !scopes.includes(access))) {
    throw sessionRequired("Only a signed-in person may do this, not an app's access token.")
  }
  // No app may make administrative calls or calls for the owner alone, whatever its token claims.
  if (access === 'owner' || isAdministrative(access)) {
    throw new KeywayError('insufficient_scope', 'No scope of an app grants this. Sign in to do it.')
  }
  if (!scopes.includes(access)) {
    const detail = `This access token lacks the scope ${access}. Ask the person for it.`
    throw new KeywayError('insufficient_scope', detail, { scope: access })
  }
}

/**
 * The credential of a Bearer request.
 *
 * @throws KeywayError `authentication_required` without a Bearer credential, `invalid_token` if it is malformed,
 *   `invalid_request` if the header was sent twice
 */
export function bearerToken(incoming: IncomingMessage): string {
  const credential = parseAuthorization(incoming)
  if (credential?.scheme !== 'bearer') {
    throw new KeywayError(
      'authentication_required',
      'Sign in, or send an API key: Authorization: Bearer <access token or svc_… key>.',
    )
  }
  if (!TOKEN68.test(credential.value)) throw invalidToken('The Bearer token is malformed.')
  return credential.value
}

function invalidToken(detail: string): KeywayError {
  return new KeywayError('invalid_token', detail)
}

function sessionRequired(detail: string): KeywayError {
  return new KeywayError('session_required', detail)
}

interface Credential {
  scheme: string
  value: string
}

/** The syntax of credentials after the scheme (RFC 6750 section 2.1, RFC 9110 section 11.2). */
const TOKEN68 = /^[A-Za-z0-9\-._~+/]+=*$/

/**
 * The Authorization header, with its scheme in lower case; null if it is absent.
 *
 * @throws KeywayError `invalid_request` if it was sent twice
 */
function parseAuthorization(incoming: IncomingMessage): Credential | null {
  const { authorization } = incoming.headers
  if (authorization === undefined) return null
  if (incoming.headersDistinct.authorization?.length !== 1) {
    throw invalidRequest([{ field: 'Authorization', message: 'must be sent once' }])
  }
  const [scheme = '', value = ''] = splitOnce(authorization, ' ')
  return { scheme: scheme.toLowerCase(), value: value.replace(/^ +/, '') }
}

/**
 * The id and secret of an OAuth client in the Authorization header, each form-encoded (RFC 6749 section 2.3.1). Null if
 * the header is absent, `unusable` if it has any other content.
 *
 * @throws KeywayError `invalid_request` if the header was sent twice
 */
export function clientCredentials(incoming: IncomingMessage): HeaderCredentials | null {
  const credential = parseAuthorization(incoming)
  if (credential === null) return null
  const idAndSecret = credential.scheme === 'basic' ? parseBasic(credential.value) : null
  const id = idAndSecret && formDecode(idAndSecret.id)
  const secret = idAndSecret && formDecode(idAndSecret.secret)
  return id && secret ? { id, secret } : 'unusable'
}

function formDecode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}

/**
 * Decodes Basic credentials: base64 of `id:secret` in UTF-8 (RFC 7617). Null if they are malformed, or a part is empty.
 */
function parseBasic(value: string): { id: string; secret: string } | null {
  if (!TOKEN68.test(value)) return null
  const [id, secret] = splitOnce(Buffer.from(value, 'base64').toString(), ':')
  return id && secret ? { id, secret } : null
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}
