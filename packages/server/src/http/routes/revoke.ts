import { z } from 'zod'
import { NO_CONTENT } from '../answer.ts'
import { text } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import { EXAMPLE_KEY } from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'

export const revocationBody = z.object({ token: text('an API key or a refresh token', EXAMPLE_KEY) })

export function revokeRoute({ apiKeys, sessions }: Pick<HttpPorts, 'apiKeys' | 'sessions'>): Route {
  return route({
    method: 'POST',
    path: '/auth/revoke',
    operation: 'revokeToken',
    tag: 'Tokens',
    summary: 'Revoke a key or session by its credential (RFC 7009)',
    description:
      'Anyone who has an API key or a refresh token can revoke it; the owner of a key is notified by mail. Unknown credentials get the same response.',
    access: 'public',
    body: revocationBody,
    form: {},
    example: { token: EXAMPLE_KEY },
    answers: [{ status: 204, description: 'It is revoked, or was unknown.' }],
    errors: [],
    async handle({ body, caller }) {
      if (apiKeys.mayBeKey(body.token)) await apiKeys.revokeByPossession(body.token, caller)
      else await sessions.endByToken(body.token, 'revoked', caller)
      return NO_CONTENT
    },
  })
}
