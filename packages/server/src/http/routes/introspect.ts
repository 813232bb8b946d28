import { z } from 'zod'
import { ok } from '../answer.ts'
import { optional, text, wholeNumber } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'

/** Calls of one request. */
const MAX_CONSUMED = 1_000_000

const consume = wholeNumber(`a whole number from 0 to ${MAX_CONSUMED}`, 1, 0, MAX_CONSUMED).meta({
  description: 'Calls to count against the rates and the quota of the key; 0, the default, counts nothing.',
})

export const introspectionBody = z.object({
  token: text('a token or API key', answers.EXAMPLE_KEY),
  consume: optional(consume),
})

export function introspectRoute({ introspection }: Pick<HttpPorts, 'introspection'>): Route {
  return route({
    method: 'POST',
    path: '/auth/introspect',
    operation: 'introspectToken',
    tag: 'Tokens',
    summary: 'Introspect a credential (RFC 7662)',
    description:
      'For registered apps. A credential is not active if it is unknown or expired, or if its key, session or owner has ended. The app that a key’s `app_id` names and first-party apps also read its `external_id`, `metadata` and what its `limits` leave, and may `consume` calls of it: all of them or, over a limit, none.',
    access: 'app',
    body: introspectionBody,
    form: { numbers: ['consume'] },
    example: { token: answers.EXAMPLE_KEY },
    answers: [
      answers.okAnswer(
        'Whether it is active, and its claims.',
        answers.introspection,
        answers.introspectionExample,
      ),
    ],
    errors: ['forbidden', 'rate_limited', 'quota_exhausted'],
    async handle({ body, principal }) {
      return ok(await introspection.introspect(body.token, principal, body.consume))
    },
  })
}
