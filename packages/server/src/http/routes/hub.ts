import { KeywayError } from '../../errors.ts'
import { CREDENTIAL_IN_URL } from '../../hub/handshake.ts'
import { type Route, route } from '../route.ts'

/** `GET /hub` without an upgrade. Upgrade requests are handled by `hub/handshake.ts` instead. */
export function hubRoutes(publicUrl: string): Route[] {
  return [
    route({
      method: 'GET',
      path: '/hub',
      operation: 'connectToHub',
      tag: 'Agents',
      summary: 'Connect an agent (WebSocket)',
      description:
        'Upgrade to WebSocket with `Authorization: Bearer <agent token>` and the subprotocol `keyway.hub.v1`. A plain request is answered 426.',
      access: 'public',
      credentialInUrl: () => new KeywayError('invalid_token', CREDENTIAL_IN_URL),
      answers: [],
      errors: ['invalid_token', 'upgrade_required'],
      handle() {
        throw new KeywayError('upgrade_required', `Connect a WebSocket client to ${hubUrl(publicUrl)}.`)
      },
    }),
  ]
}

export function hubUrl(publicUrl: string): string {
  return `${publicUrl.replace(/^http/, 'ws')}/hub`
}
