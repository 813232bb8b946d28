import { z } from 'zod'
import { API_KEY_PREFIX } from '../../api-keys/api-key.ts'
import { NO_CONTENT, ok } from '../answer.ts'
import { credential, optional, text } from '../body-fields.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'
import type { HttpServices } from '../services.ts'

const exchangeBody = z.object({
  api_key: credential('a whole API key', answers.EXAMPLE_KEY),
  audience: optional(text('the audience of a registered app', 'https://reports.example.com')),
})

const tokenBody = z.object({ token: text('a token or API key', answers.EXAMPLE_KEY) })
const TAG = 'Tokens'

type Needs = Pick<HttpServices, 'agentTokens' | 'apiKeys' | 'sessions' | 'introspection'>

export function tokenRoutes({ agentTokens, apiKeys, sessions, introspection }: Needs): Route[] {
  return [
    route({
      method: 'POST',
      path: '/auth/agent-token',
      operation: 'exchangeApiKey',
      tag: TAG,
      summary: 'Exchange a key for an agent token',
      description:
        'The token opens the hub for 15 minutes, or until the key ends. Needs `agent:connect`, or a key without scopes.',
      access: 'public',
      body: exchangeBody,
      example: { api_key: answers.EXAMPLE_KEY },
      countsFailures: true,
      answers: [
        {
          status: 200,
          description: 'The token.',
          schema: answers.agentToken,
          example: answers.agentTokenExample,
        },
      ],
      errors: [
        'invalid_api_key',
        'api_key_revoked',
        'api_key_expired',
        'account_suspended',
        'network_not_allowed',
        'insufficient_scope',
        'rate_limited',
      ],
      async handle({ body, caller }) {
        const { token, agentId, expiresIn } = await agentTokens.exchange(body.api_key, body.audience, caller)
        return ok({ token, agent_id: agentId, expires_in: expiresIn })
      },
    }),
    route({
      method: 'POST',
      path: '/auth/revoke',
      operation: 'revokeToken',
      tag: TAG,
      summary: 'End a key or session that you hold (RFC 7009)',
      description:
        'Whoever holds an API key or a refresh token can end it; the owner of a key is told by mail. Unknown ones are answered alike.',
      access: 'public',
      body: tokenBody,
      example: { token: answers.EXAMPLE_KEY },
      answers: [{ status: 204, description: 'It has ended, or was unknown.' }],
      errors: [],
      async handle({ body, caller }) {
        if (body.token.startsWith(API_KEY_PREFIX)) await apiKeys.revokeByPossession(body.token, caller)
        else await sessions.endByToken(body.token, 'revoked', caller)
        return NO_CONTENT
      },
    }),
    route({
      method: 'POST',
      path: '/auth/introspect',
      operation: 'introspectToken',
      tag: TAG,
      summary: 'Ask what a credential stands for (RFC 7662)',
      description:
        'For registered apps. Dead, by itself or by its key, session or owner, and unknown credentials are not active.',
      access: 'app',
      body: tokenBody,
      example: { token: answers.EXAMPLE_KEY },
      answers: [
        {
          status: 200,
          description: 'What it stands for.',
          schema: answers.introspection,
          example: answers.introspectionExample,
        },
      ],
      errors: [],
      async handle({ principal, body }) {
        return ok(await introspection.introspect(body.token, principal))
      },
    }),
  ]
}
