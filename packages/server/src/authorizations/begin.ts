import type { App } from '../apps/app.ts'
import type { Storage } from '../store.ts'
import {
  type AuthorizationRequest,
  type Refusal,
  type RequestOrRefusal,
  type RequestParams,
  readParams,
  readRequest,
  redirectUriOf,
} from './authorization-request.ts'
import type { PushedRequests } from './pushed-requests.ts'

export type CheckedRequest =
  | { request: AuthorizationRequest; params: RequestParams; pushedId: string | null }
  /** The error is for the app, and sent to its redirect URI. */
  | { refusal: Refusal; redirectUri: string; state: string | null; app: App }
  /** The error is only shown to the person, since it is not certain that the redirect URI belongs to the app. */
  | { unusable: Refusal }

export interface BeginDeps {
  storage: Storage
  publicUrl: string
  /** The app with this client id, registered or described by a document; null if there is none. */
  findClient(id: string, network: string): Promise<App | null>
}

/** Maximum number of languages of one request that are read. */
const MAX_LOCALES = 20

/** Reads authorization requests, pushed ones too, and checks them against the registered app. */
export function createBegin({ storage, publicUrl, findClient }: BeginDeps, pushedRequests: PushedRequests) {
  const { apps } = storage.store

  return { begin, resume, findApp, localesOf }

  async function begin(query: URLSearchParams, network: string): Promise<CheckedRequest> {
    const result = readParams(query)
    if ('refusal' in result) return { unusable: result.refusal }
    const { request_uri: uri, client_id: appId } = result.params
    const pushedRequest = uri === undefined ? null : pushedRequests.open(uri)
    if (!pushedRequest) return resume(result.params, null, network)
    // Only the pushed parameters count, not those that the browser adds (RFC 9126 section 4).
    if (pushedRequest === 'expired' || pushedRequest.params.client_id !== appId)
      return unusable('invalid_request', 'The pushed request has expired, or belongs to another app.')
    return resume(pushedRequest.params, pushedRequest.id, network)
  }

  /**
   * Checks the parameters against the current settings of the app, which may have changed since the app pushed the
   * parameters or the person left to sign in.
   */
  async function resume(
    params: RequestParams,
    pushedId: string | null,
    network: string,
  ): Promise<CheckedRequest> {
    const app = await findApp(params.client_id, network)
    if (!app) return unusable('invalid_client', 'No app with this client_id is registered here.')
    const redirectUri = redirectUriOf(app, params)
    if (redirectUri === null)
      return unusable('invalid_request', 'The redirect_uri is not one that is registered for this app.')
    const result = await withCheckedAudience(readRequest(app, redirectUri, params))
    return 'refusal' in result ? { ...result, app } : { ...result, params, pushedId }
  }

  function localesOf(query: URLSearchParams): string[] {
    const uri = query.get('request_uri')
    const pushedRequest = uri === null ? null : pushedRequests.open(uri)
    if (pushedRequest === 'expired') return []
    const requestedLocales = pushedRequest
      ? (pushedRequest.params.ui_locales ?? '')
      : (query.get('ui_locales') ?? '')
    return requestedLocales.split(' ', MAX_LOCALES)
  }

  async function findApp(id: string | undefined, network: string): Promise<App | null> {
    return id === undefined ? null : findClient(id, network)
  }

  /** Checks that the requested audience is this service's or registered for an app (RFC 8707 section 2). */
  async function withCheckedAudience(result: RequestOrRefusal): Promise<RequestOrRefusal> {
    if ('refusal' in result) return result
    const { audience, redirectUri, state } = result.request
    if (audience === null) return result
    if (audience === publicUrl) return { request: { ...result.request, audience: null } }
    if (await apps.findByAudience(audience)) return result
    const refusal = { error: 'invalid_target', description: 'No app with this audience is registered.' }
    return { refusal, redirectUri, state }
  }
}

function unusable(error: string, description: string): { unusable: Refusal } {
  return { unusable: { error, description } }
}
