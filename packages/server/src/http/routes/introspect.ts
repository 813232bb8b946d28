import { z } from 'zod'
import { ok } from '../answer.ts'
import { text } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'

export function introspectRoute({ introspection }: Pick<HttpPorts, 'introspection'>): Route {
  return route({
    method: 'POST',
    path: '/auth/introspect',
    operation: 'introspectToken',
    tag: 'Tokens',
    summary: 'Introspect a credential (RFC 7662)',
    description:
      'For registered apps. A credential is not active if it is unknown or expired, or if its key, session or owner has ended. The app that a key’s `app_id` names and first-party apps also read its `external_id` and `metadata`.',
    access: 'app',
    body: z.object({ token: text('a token or API key', answers.EXAMPLE_KEY) }),
    example: { token: answers.EXAMPLE_KEY },
    answers: [
      {
        status: 200,
        description: 'Whether it is active, and its claims.',
        schema: answers.introspection,
        example: answers.introspectionExample,
      },
    ],
    errors: [],
    async handle({ body, principal }) {
      return ok(await introspection.introspect(body.token, principal))
    },
  })
}
