import { z } from 'zod'
import { API_KEY_PREFIX } from '../../api-keys/api-key.ts'
import { NO_CONTENT } from '../answer.ts'
import { text } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import { EXAMPLE_KEY } from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'

export function revokeRoute({ apiKeys, sessions }: Pick<HttpPorts, 'apiKeys' | 'sessions'>): Route {
  return route({
    method: 'POST',
    path: '/auth/revoke',
    operation: 'revokeToken',
    tag: 'Tokens',
    summary: 'End a key or session that you hold (RFC 7009)',
    description:
      'Whoever holds an API key or a refresh token can end it; the owner of a key is told by mail. Unknown ones are answered alike.',
    access: 'public',
    body: z.object({ token: text('an API key or a refresh token', EXAMPLE_KEY) }),
    example: { token: EXAMPLE_KEY },
    answers: [{ status: 204, description: 'It has ended, or was unknown.' }],
    errors: [],
    async handle({ body, caller }) {
      if (body.token.startsWith(API_KEY_PREFIX)) await apiKeys.revokeByPossession(body.token, caller)
      else await sessions.endByToken(body.token, 'revoked', caller)
      return NO_CONTENT
    },
  })
}
