import { type App, CLI_CLIENT_ID, isSelfDescribed } from '../apps/app.ts'
import { grantableScopes } from '../authorizations/scopes.ts'
import { MAX_DEVICE_NAME_LENGTH } from '../device-authorizations/device-authorization.ts'
import type { DeviceAuthorizations } from '../device-authorizations/device-authorizations.ts'
import { cliScopes } from '../device-authorizations/keyway-cli.ts'
import type { Storage } from '../store.ts'
import type { ClientAuthentication, ClientRequest } from './client-authentication.ts'
import { audienceOf, type Form } from './form.ts'
import { OAuthError } from './oauth-error.ts'

/** The device authorization response (RFC 8628 section 3.2). */
export interface DeviceAnswer {
  device_code: string
  user_code: string
  verification_uri: string
  verification_uri_complete: string
  /** Seconds. */
  expires_in: number
  /** Seconds. */
  interval: number
}

export interface DeviceDeps {
  clients: ClientAuthentication
  deviceAuthorizations: Pick<DeviceAuthorizations, 'request'>
  storage: Storage
  publicUrl: string
}

/**
 * Answers a device authorization request. The extension parameter `device_name` is what the device calls itself; the
 * page on which a person approves the device shows it as unverified.
 *
 * @throws OAuthError, KeywayError `rate_limited`
 */
export async function answerDevice(deps: DeviceDeps, request: ClientRequest): Promise<DeviceAnswer> {
  const { clients, deviceAuthorizations, publicUrl } = deps
  const app = await clients.app(request)
  // The name of a self-registered client is unverified: named "Your bank", it could trick people into approving its
  // codes (RFC 8628 section 5.4).
  if (isSelfDescribed(app.id))
    throw new OAuthError('unauthorized_client', 'Only apps that the operator registered may connect devices.')
  const authorizationRequest = {
    clientId: app.id,
    scopes: scopesFor(app, request.form),
    resource: await resourceFor(app, request.form, deps),
    deviceName: deviceNameOf(request.form),
  }
  const codes = await deviceAuthorizations.request(authorizationRequest, request.caller)
  const completeQuery = new URLSearchParams({ user_code: codes.userCode, ticket: codes.ticket })
  return {
    device_code: codes.deviceCode,
    user_code: codes.userCode,
    verification_uri: `${publicUrl}/device`,
    verification_uri_complete: `${publicUrl}/device?${completeQuery}`,
    expires_in: codes.expiresIn,
    interval: codes.interval,
  }
}

function scopesFor(app: App, { scope = '' }: Form): string[] {
  const outcome = app.id === CLI_CLIENT_ID ? cliScopes(splitScopes(scope)) : grantableScopes(app, scope)
  if ('scopes' in outcome) return outcome.scopes
  throw new OAuthError('invalid_scope', `${outcome.refused}.`)
}

function splitScopes(scope: string): string[] {
  return [...new Set(scope.split(' ').filter(Boolean))]
}

/**
 * The audience of the access tokens (RFC 8707); null for this service. The built-in client (keyway-cli.ts) may only
 * request this service, where it creates a key.
 *
 * @throws OAuthError `invalid_target`
 */
async function resourceFor(app: App, form: Form, { storage, publicUrl }: DeviceDeps): Promise<string | null> {
  const audience = audienceOf(form)
  if (audience === undefined || audience === publicUrl) return null
  if (app.id !== CLI_CLIENT_ID && (await storage.store.apps.findByAudience(audience))) return audience
  throw new OAuthError('invalid_target', 'No app with this audience is registered.')
}

function deviceNameOf({ device_name: name }: Form): string | null {
  if (name === undefined) return null
  if ([...name].length > MAX_DEVICE_NAME_LENGTH || /\p{Cc}/u.test(name))
    throw new OAuthError(
      'invalid_request',
      `device_name must be at most ${MAX_DEVICE_NAME_LENGTH} characters without control characters.`,
    )
  return name.trim() || null
}
