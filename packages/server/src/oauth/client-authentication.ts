import type { App } from '../apps/app.ts'
import type { Apps } from '../apps/apps.ts'
import type { Caller } from '../network.ts'
import type { VerifyAssertion } from './client-assertion.ts'
import type { Form } from './form.ts'
import { invalidClient, OAuthError } from './oauth-error.ts'

/** The decoded Basic credentials in an Authorization header (RFC 6749 section 2.3.1); `unusable` for anything else. */
export type HeaderCredentials = { id: string; secret: string } | 'unusable'

/** The parts of a request that authenticate its client, not verified yet. */
export interface ClientRequest {
  form: Form
  header: HeaderCredentials | null
  caller: Caller
}

/** A client as a request names it, not authenticated yet. */
export interface NamedClient {
  id: string
  /** Null for a request with a client id alone, as public clients send. */
  secret: string | null
}

export interface ClientAuthentication {
  /**
   * The app that makes this request: a confidential one by its secret or a signed assertion, a public one by its id
   * alone.
   *
   * @throws OAuthError `invalid_client`, `invalid_request`
   */
  app(request: ClientRequest): Promise<App>
  /** Like `app`, but null if the request names no client. @throws OAuthError `invalid_client`, `invalid_request` */
  appIfNamed(request: ClientRequest): Promise<App | null>
}

/** Ways in which clients authenticate at the token endpoint (RFC 8414 section 2). */
export const CLIENT_AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none']
export const ASSERTION_ALGS = ['EdDSA', 'Ed25519', 'ES256', 'RS256']
/** The `client_assertion_type` of a JWT (RFC 7523 section 2.2). */
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

export function createClientAuthentication({
  apps,
  findClient,
  assertions,
}: {
  apps: Pick<Apps, 'authenticate'>
  findClient(id: string, network: string): Promise<App | null>
  /** Loads the verification of client assertions on first use, since few clients need it. */
  assertions(): Promise<VerifyAssertion>
}): ClientAuthentication {
  return { app, appIfNamed }

  async function app(request: ClientRequest): Promise<App> {
    const foundApp = await appIfNamed(request)
    if (!foundApp) throw invalidClient('Name the client: client_id, with client_secret where it has one.')
    return foundApp
  }

  async function appIfNamed(request: ClientRequest): Promise<App | null> {
    if (request.form.client_assertion_type !== undefined) return appByAssertion(request)
    const client = namedClient(request)
    if (!client) return null
    const foundApp =
      client.secret === null
        ? await publicApp(client.id, request.caller)
        : await apps.authenticate(client.id, client.secret)
    if (!foundApp || foundApp.isPublic !== (client.secret === null))
      throw invalidClient('No client has this id and secret.')
    return foundApp
  }

  async function appByAssertion({ form, header, caller }: ClientRequest): Promise<App> {
    const {
      client_assertion_type: type,
      client_assertion: assertion,
      client_id: id,
      client_secret: secret,
    } = form
    if (type !== ASSERTION_TYPE || assertion === undefined)
      throw new OAuthError(
        'invalid_request',
        `client_assertion_type must be ${ASSERTION_TYPE}, with a client_assertion.`,
      )
    if (secret !== undefined || header !== null)
      throw new OAuthError('invalid_request', 'Authenticate the client in one way.')
    const foundApp = await (await assertions())(assertion, id, caller.network)
    if (!foundApp) throw invalidClient('The client assertion is not valid, or was used before.')
    return foundApp
  }

  /** The app with this id if it is a public client, which has no secret to authenticate with; null otherwise. */
  async function publicApp(id: string, { network }: Caller): Promise<App | null> {
    const foundApp = await findClient(id, network)
    return foundApp?.isPublic ? foundApp : null
  }
}

/**
 * The client that a request names, by one method only (RFC 6749 section 2.3); null if it names none.
 * @throws OAuthError `invalid_request`, `invalid_client`
 */
export function namedClient({ form, header }: Pick<ClientRequest, 'form' | 'header'>): NamedClient | null {
  const { client_id: id, client_secret: secret = null } = form
  if (header === null) return id === undefined ? null : { id, secret }
  if (header === 'unusable') throw invalidClient('Authenticate with the scheme Basic.')
  if (secret !== null)
    throw new OAuthError('invalid_request', 'Send the client secret once: in the header or in the form.')
  if (id !== undefined && id !== header.id)
    throw new OAuthError('invalid_request', 'client_id is not the client in the Authorization header.')
  return header
}
