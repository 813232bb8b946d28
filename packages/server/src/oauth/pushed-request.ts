import type { App } from '../apps/app.ts'
import { readParams } from '../authorizations/authorization-request.ts'
import type { Authorizations } from '../authorizations/authorizations.ts'
import type { ClientRequest } from './client-authentication.ts'
import { OAuthError, type OAuthErrorCode } from './oauth-error.ts'

/** Validates an authorization request as the authorization endpoint does, and pushes it (RFC 9126 section 2.1). */
export async function pushRequest(
  { resume, push }: Authorizations,
  app: App,
  { form, caller }: ClientRequest,
) {
  const { client_id: _, client_secret: __, ...parameters } = form
  const parsedRequest = readParams(new URLSearchParams({ ...parameters, client_id: app.id }))
  if ('refusal' in parsedRequest) throw refusalOf(parsedRequest.refusal)
  if (parsedRequest.params.request_uri)
    throw new OAuthError('invalid_request', 'A pushed request must not name a request_uri.')
  const outcome = await resume(parsedRequest.params, null, caller.network)
  if ('unusable' in outcome) throw refusalOf(outcome.unusable)
  if ('refusal' in outcome) throw refusalOf(outcome.refusal)
  return push(parsedRequest.params)
}

function refusalOf({ error, description }: { error: string; description: string }): OAuthError {
  return new OAuthError(error as OAuthErrorCode, description)
}
