import type { ApiKeys } from '../api-keys/api-keys.ts'
import { type App, hasRightsOver, isSelfDescribed } from '../apps/app.ts'
import { webOriginOf } from '../apps/redirect-uri.ts'
import type { Clients } from '../clients/clients.ts'
import type { RegisteredClient } from '../clients/registration.ts'
import type { DeviceAuthorizations } from '../device-authorizations/device-authorizations.ts'
import { KeywayError } from '../errors.ts'
import { parseId } from '../ids.ts'
import type { Introspection } from '../introspection/introspection.ts'
import type { IntrospectionAnswer } from '../introspection/introspection-answer.ts'
import type { KnownNetworks } from '../known-networks.ts'
import type { Caller } from '../network.ts'
import { REFRESH_TOKEN_PREFIX } from '../sessions/refresh-token.ts'
import type { Session } from '../sessions/session.ts'
import type { VerifyAssertion } from './client-assertion.ts'
import { type ClientRequest, createClientAuthentication, namedClient } from './client-authentication.ts'
import type { DeviceAnswer } from './device-authorization.ts'
import type { Grant, GrantDeps, GrantResult, Metadata, TokenRequest } from './grant.ts'
import { GRANT_TYPES } from './grants.ts'
import { invalidClient, OAuthError, type OAuthErrorCode } from './oauth-error.ts'

/** The OAuth 2.0 endpoints that clients call directly. */
export interface OAuth {
  /**
   * The token endpoint (RFC 6749 section 3.2).
   *
   * @throws OAuthError, KeywayError `rate_limited`, `unavailable`
   */
  token(request: TokenRequest): Promise<GrantResult>
  /** The device authorization endpoint (RFC 8628 section 3.1). @throws OAuthError, KeywayError `rate_limited` */
  device(request: ClientRequest): Promise<DeviceAnswer>
  /**
   * The introspection endpoint (RFC 7662), for confidential clients that the operator registered.
   *
   * @throws OAuthError, and KeywayError as `Introspection.introspect`
   */
  introspect(request: ClientRequest, token: string, consume?: number): Promise<IntrospectionAnswer>
  /**
   * The revocation endpoint (RFC 7009): ends a key, or the session of a refresh token or of an app's access token.
   * Possession of the token suffices; a client that authenticates may only revoke tokens that were issued to it. An
   * unknown token is no error.
   *
   * @throws OAuthError `invalid_client`, `invalid_request`, `invalid_grant` (issued to another client),
   *   `unsupported_token_type` (a token that only expires)
   */
  revoke(request: ClientRequest, token: string): Promise<void>
  /** The members of the discovery document that depend on the settings. */
  readonly metadata: Metadata
  /**
   * Registers a client (RFC 7591); null if the operator does not allow it.
   *
   * @throws OAuthError, KeywayError `rate_limited`
   */
  register: ((metadata: unknown, caller: Caller) => Promise<RegisteredClient>) | null
  /** Pushes an authorization request (RFC 9126). @throws OAuthError */
  push(request: ClientRequest): Promise<{ requestUri: string; expiresIn: number }>
  /**
   * Claims about the person of an app's access token (OpenID Connect Core section 5.3).
   *
   * @throws KeywayError `invalid_token`, `insufficient_scope`
   */
  userinfo(accessToken: string): Promise<Record<string, unknown>>
  /** Origins of the redirect URIs of public clients, whose web pages call these endpoints. */
  clientOrigins(): Promise<readonly string[]>
}

export function createOAuth(
  deps: Omit<GrantDeps, 'clients'> & {
    introspection: Introspection
    apiKeys: Pick<ApiKeys, 'revokeByPossession' | 'mayBeKey'>
    deviceAuthorizations: Pick<DeviceAuthorizations, 'request'>
    clientRegistry: Clients
    /** Networks, besides the public Internet, in which the URLs of apps may be. */
    privateNetworks: readonly string[]
    knownNetworks: Pick<KnownNetworks, 'isKnown'>
  },
): OAuth {
  const { storage, introspection, apiKeys, sessions, clientRegistry } = deps
  let verifierLoad: Promise<VerifyAssertion> | undefined
  const clients = createClientAuthentication({
    ...deps,
    findClient: deps.clientRegistry.find,
    assertions() {
      verifierLoad ??= import('./client-assertion.ts').then(({ createClientAssertions }) =>
        createClientAssertions({ ...deps, findApp: deps.clientRegistry.find }),
      )
      return verifierLoad
    },
  })
  const loadedGrants = new Map<string, Grant>()

  return {
    async token(request) {
      const { grant_type: type } = request.form
      if (type === undefined) throw new OAuthError('invalid_request', 'grant_type is required.')
      return (loadedGrants.get(type) ?? (await loadGrant(type)))(request)
    },

    async device(request) {
      const { answerDevice } = await import('./device-authorization.ts')
      return answerDevice({ ...deps, clients }, request)
    },

    async introspect(request, token, consume) {
      const app = await clients.app(request)
      if (app.isPublic || isSelfDescribed(app.id))
        throw invalidClient('Only a client with a secret that the operator registered may introspect tokens.')
      return introspection.introspect(token, app, consume)
    },

    metadata: {
      ...(clientRegistry.registration && { registration_endpoint: `${deps.publicUrl}/oauth/register` }),
      client_id_metadata_document_supported: clientRegistry.allowsDocuments,
    },

    register: clientRegistry.registration && register,

    async push(request) {
      const { pushRequest } = await import('./pushed-request.ts')
      return pushRequest(await deps.authorizations(), await clients.app(request), request)
    },

    async userinfo(accessToken) {
      const [{ claimsAbout }, { user, scopes }] = await Promise.all([
        import('../authorizations/id-token.ts'),
        sessions.authenticate(accessToken),
      ])
      if (scopes?.includes('openid')) return claimsAbout(user, scopes)
      throw new KeywayError('insufficient_scope', 'Ask the person for the scope openid.', { scope: 'openid' })
    },

    async revoke(request, token) {
      const { caller } = request
      const namedByRequest = namedClient(request)
      // A UUID is the id of an API key and not of a registered client. Such a request needs no authentication:
      // possession of the token permits its revocation.
      const client = namedByRequest && !parseId(namedByRequest.id) ? await clients.app(request) : null
      if (apiKeys.mayBeKey(token)) await apiKeys.revokeByPossession(token, caller)
      else if (token.startsWith(REFRESH_TOKEN_PREFIX)) await revokeRefreshToken(token, client, caller)
      else await revokeAccessToken(token, client, caller)
    },

    async clientOrigins() {
      const uris = await storage.store.apps.publicRedirectUris()
      return uris.flatMap(uri => webOriginOf(uri) ?? [])
    },
  }

  async function register(metadata: unknown, caller: Caller): Promise<RegisteredClient> {
    const outcome = await (await clientRegistry.registration!())(metadata, caller)
    if ('error' in outcome) throw new OAuthError(outcome.error as OAuthErrorCode, outcome.description)
    return outcome
  }

  async function revokeRefreshToken(token: string, client: App | null, caller: Caller): Promise<void> {
    const session = await sessions.ofRefreshToken(token)
    if (!session) return
    if (client !== null && !isClientOf(client, session)) throw issuedToAnother()
    await sessions.endByToken(token, 'revoked', caller)
  }

  async function revokeAccessToken(token: string, client: App | null, caller: Caller): Promise<void> {
    const claims = await introspection.introspect(token)
    if (!claims.active) return
    // Only an app's access token, which has scopes, is revoked, with its session. Any other token expires soon, and a
    // person's own session is ended by revoking its refresh token.
    if (claims.type !== 'access' || claims.scope === undefined)
      throw new OAuthError(
        'unsupported_token_type',
        'Such a token expires within minutes and cannot be revoked.',
      )
    if (client !== null && client.id !== claims.client_id) throw issuedToAnother()
    await sessions.end(String(claims.sub), String(claims.sid), caller)
  }

  async function loadGrant(type: string): Promise<Grant> {
    const grantType = Object.hasOwn(GRANT_TYPES, type) ? GRANT_TYPES[type] : undefined
    if (!grantType)
      throw new OAuthError(
        'unsupported_grant_type',
        `grant_type must be one of ${Object.keys(GRANT_TYPES).join(', ')}.`,
      )
    const grant = (await grantType.load())({ ...deps, clients })
    loadedGrants.set(type, grant)
    return grant
  }
}

/** Whether the client was granted the session, or has rights over it as a person's sign-in under the client's id. */
function isClientOf(client: App, session: Session): boolean {
  return session.kind === 'app' ? client.id === session.appId : hasRightsOver(client, session)
}

function issuedToAnother(): OAuthError {
  return new OAuthError('invalid_grant', 'The token was issued to another client.')
}
