import { type App, CLI_CLIENT_ID } from '../apps/app.ts'
import { MAX_DEVICE_NAME_LENGTH } from '../device-authorizations/device-authorization.ts'
import type { DeviceAuthorizations } from '../device-authorizations/device-authorizations.ts'
import { cliScopes } from '../device-authorizations/keyway-cli.ts'
import type { Caller } from '../network.ts'
import type { ClientAuthentication, ClientRequest } from './client-authentication.ts'
import { audienceOf, type Form, scopesOf } from './form.ts'
import { OAuthError } from './oauth-error.ts'

/** A request to the device authorization endpoint. */
export type DeviceRequest = ClientRequest & { caller: Caller }

/** RFC 8628 section 3.2. */
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
  publicUrl: string
}

/**
 * Answers a device authorization request. Its parameter `device_name` is ours: what the device calls itself, which the page
 * shows as a claim.
 *
 * @throws OAuthError, KeywayError `rate_limited`
 */
export async function answerDevice(
  { clients, deviceAuthorizations, publicUrl }: DeviceDeps,
  request: DeviceRequest,
): Promise<DeviceAnswer> {
  const app = await clients.app(request)
  const wanted = {
    clientId: app.id,
    scopes: scopesFor(app, request.form),
    resource: null,
    deviceName: deviceNameOf(request.form),
  }
  const codes = await deviceAuthorizations.request(wanted, request.caller)
  const complete = new URLSearchParams({ user_code: codes.userCode, ticket: codes.ticket })
  return {
    device_code: codes.deviceCode,
    user_code: codes.userCode,
    verification_uri: `${publicUrl}/device`,
    verification_uri_complete: `${publicUrl}/device?${complete}`,
    expires_in: codes.expiresIn,
    interval: codes.interval,
  }
}

function scopesFor(app: App, form: Form): string[] {
  if (app.id !== CLI_CLIENT_ID)
    throw new OAuthError('unauthorized_client', `Only ${CLI_CLIENT_ID} may use the device grant.`)
  if (audienceOf(form) !== undefined)
    throw new OAuthError('invalid_target', 'A key is for this service: leave resource and audience out.')
  const asked = cliScopes(scopesOf(form) ?? [])
  if ('refused' in asked) throw new OAuthError('invalid_scope', `${asked.refused}.`)
  return asked.scopes
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
