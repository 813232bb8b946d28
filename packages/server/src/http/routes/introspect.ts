import { z } from 'zod'
import { KeywayError } from '../../errors.ts'
import type { Introspection } from '../../introspection/introspection.ts'
import { problemOf } from '../../problems.ts'
import { ok } from '../answer.ts'
import { expected, optional, strict, text, wholeNumber } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'

/** Maximum value of `consume`. */
const MAX_CONSUMED = 1_000_000

const consume = wholeNumber(`a whole number from 0 to ${MAX_CONSUMED}`, 1, 0, MAX_CONSUMED).meta({
  description: 'Calls to count against the rates and the quota of the key; 0, the default, counts nothing.',
})

export const introspectionBody = z.object({
  token: text('a token or API key', answers.EXAMPLE_KEY),
  consume: optional(consume),
})

/** Maximum number of credentials in one request. Each key may have 16 KiB of metadata, which the answer repeats. */
const MAX_TOKENS = 32
/** Body size limit: enough for MAX_TOKENS imported keys of 512 characters each. */
const MAX_TOKENS_BYTES = 24 * 1024

const introspectionsBody = z.object({
  tokens: z
    .array(strict({ token: text('a token or API key', answers.EXAMPLE_KEY), consume: optional(consume) }), {
      error: expected('a list of tokens', `[{"token": "${answers.EXAMPLE_KEY}", "consume": 1}]`),
    })
    .min(1, { error: 'must have at least one token' })
    .max(MAX_TOKENS, { error: `must have at most ${MAX_TOKENS} tokens` }),
})

export function introspectionRoutes(
  { introspection }: Pick<HttpPorts, 'introspection'>,
  publicUrl: string,
): Route[] {
  return [introspectRoute(introspection), introspectManyRoute(introspection, publicUrl)]
}

function introspectRoute(introspection: Introspection): Route {
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

function introspectManyRoute(introspection: Introspection, publicUrl: string): Route {
  return route({
    method: 'POST',
    path: '/auth/introspections',
    operation: 'introspectTokens',
    tag: 'Tokens',
    summary: 'Introspect several credentials',
    description: `As \`/auth/introspect\` for each of up to ${MAX_TOKENS} credentials; the answers are in the same order. One whose calls cannot be consumed has its problem as \`error\` instead, and does not affect the others.`,
    access: 'app',
    body: introspectionsBody,
    maxBodyBytes: MAX_TOKENS_BYTES,
    example: { tokens: [{ token: answers.EXAMPLE_KEY, consume: 1 }] },
    answers: [
      answers.okAnswer(
        'For each whether it is active, and its claims.',
        answers.introspections,
        answers.introspectionsExample,
      ),
    ],
    errors: [],
    async handle({ body, principal, requestId }) {
      const checks = body.tokens.map(({ token, consume = 0 }) => ({ token, consume }))
      const data = await introspection.introspectMany(checks, principal)
      return ok({
        data: data.map(answer =>
          answer instanceof KeywayError ? { error: problemOf(answer, { publicUrl, requestId }) } : answer,
        ),
      })
    },
  })
}
