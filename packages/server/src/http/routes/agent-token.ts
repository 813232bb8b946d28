import { z } from 'zod'
import { KEY_REFUSAL_CODES } from '../../api-keys/api-key.ts'
import { ok } from '../answer.ts'
import { credential, optional, text } from '../body-fields.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { withRateLimits } from '../rate-limit-fields.ts'
import { type Route, route } from '../route.ts'

const exchangeBody = z.object({
  api_key: credential('a whole API key', answers.EXAMPLE_KEY),
  audience: optional(text('the audience of a registered app', 'https://reports.example.com')),
})

export function agentTokenRoute({ agentTokens }: Pick<HttpPorts, 'agentTokens'>): Route {
  return route({
    method: 'POST',
    path: '/auth/agent-token',
    operation: 'exchangeApiKey',
    tag: 'Tokens',
    summary: 'Exchange a key for an agent token',
    description:
      'The token opens the hub for 15 minutes, or until the key ends. Needs `agent:connect`, or a key without scopes.',
    access: 'public',
    body: exchangeBody,
    example: { api_key: answers.EXAMPLE_KEY },
    countsFailures: true,
    answers: [answers.okAnswer('The token.', answers.agentToken, answers.agentTokenExample)],
    errors: ['invalid_api_key', ...KEY_REFUSAL_CODES, 'rate_limited'],
    async handle({ body, caller }) {
      const { token, agentId, expiresIn, limits } = await agentTokens.exchange(
        body.api_key,
        body.audience,
        caller,
      )
      return withRateLimits(ok({ token, agent_id: agentId, expires_in: expiresIn }), limits)
    },
  })
}
