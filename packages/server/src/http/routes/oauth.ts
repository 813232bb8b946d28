import { z } from 'zod'
import { CLI_CLIENT_ID } from '../../apps/app.ts'
import { publicFor } from '../../cache-control.ts'
import type { Form } from '../../oauth/form.ts'
import { metadataOf } from '../../oauth/metadata.ts'
import { ok } from '../answer.ts'
import { clientCredentials } from '../authenticate.ts'
import { EXAMPLE_IDS } from '../example-ids.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { withRateLimits } from '../rate-limit-fields.ts'
import { type Route, type RouteInput, route } from '../route.ts'
import { introspectionBody } from './introspect.ts'
import { revocationBody } from './revoke.ts'

export const OAUTH_TAG = 'OAuth'
const TAG = OAUTH_TAG
const METADATA_MAX_AGE_SECONDS = 300
const DISCOVERY_PATHS = {
  getOpenIdConfiguration: '/.well-known/openid-configuration',
  getAuthorizationServerMetadata: '/.well-known/oauth-authorization-server',
} as const

export const clientFields = {
  client_id: z.string().optional(),
  client_secret: z.string().optional(),
  client_assertion_type: z.string().optional(),
  client_assertion: z.string().optional(),
}
const tokenForm = z
  .object({
    grant_type: z.string().optional(),
    ...clientFields,
    scope: z.string().optional(),
    resource: z.string().optional(),
    audience: z.string().optional(),
  })
  .catchall(z.string())

const tokenAnswer = z
  .strictObject({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    expires_in: z.int().min(0),
    scope: z.string().optional(),
    refresh_token: z.string().optional(),
    id_token: z.string().optional(),
    issued_token_type: z.string().optional(),
  })
  .meta({ id: 'OAuthToken' })

const tokenExample = {
  access_token: answers.JWT_EXAMPLE,
  token_type: 'Bearer',
  expires_in: 900,
  scope: 'agent:connect',
}

const deviceForm = z
  .object({ ...clientFields, scope: z.string().optional(), device_name: z.string().optional() })
  .catchall(z.string())

const deviceAnswer = z.object({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri: z.string(),
  verification_uri_complete: z.string(),
  expires_in: z.int(),
  interval: z.int(),
})
const deviceExample = (publicUrl: string) => ({
  device_code: 'LwMvFHmnUIUW3ovRpf5wYbBJUDVFPzoEFAYBYTdYB9I',
  user_code: 'WDJB-MJHT',
  verification_uri: `${publicUrl}/device`,
  verification_uri_complete: `${publicUrl}/device?user_code=WDJB-MJHT&ticket=2UqFJTSGpP8zbcU-Zvy3Kw`,
  expires_in: 600,
  interval: 5,
})

/** The properties that the routes of the token, device, introspection and revocation endpoints share. */
const clientRoute = {
  method: 'POST',
  tag: TAG,
  access: 'public',
  errorFormat: 'oauth',
  countsFailures: true,
} as const

export function oauthRoutes({ oauth }: Pick<HttpPorts, 'oauth'>, publicUrl: string): Route[] {
  const discoveryDocument = JSON.stringify(metadataOf(publicUrl, oauth.metadata))

  return [
    ...Object.entries(DISCOVERY_PATHS).map(([operation, path]) =>
      route({
        method: 'GET',
        path,
        operation,
        tag: TAG,
        summary: 'Discover the endpoints (RFC 8414, OpenID Connect Discovery)',
        description: 'What is supported, and where. Both documents are the same.',
        access: 'public',
        cors: 'any',
        answers: [
          {
            status: 200,
            description: 'The metadata.',
            schema: z.looseObject({ issuer: z.string(), token_endpoint: z.string() }),
            example: { issuer: publicUrl, token_endpoint: `${publicUrl}/oauth/token` },
          },
        ],
        errors: [],
        handle: () => ({
          status: 200,
          body: discoveryDocument,
          headers: { 'Cache-Control': publicFor(METADATA_MAX_AGE_SECONDS) },
        }),
      }),
    ),
    route({
      ...clientRoute,
      path: '/oauth/token',
      operation: 'requestToken',
      summary: 'Request a token (RFC 6749)',
      description:
        'With `client_credentials` a key is exchanged for an agent token: `client_id` is its id and `client_secret` the key. Refusals are those of RFC 6749: `error` and `error_description`.',
      cors: 'clients',
      body: tokenForm,
      form: { only: true },
      example: {
        grant_type: 'client_credentials',
        client_id: EXAMPLE_IDS.key,
        client_secret: answers.EXAMPLE_KEY,
      },
      idempotencyKey: 'optional',
      answers: [answers.okAnswer('The token.', tokenAnswer, tokenExample)],
      errors: [],
      async handle({ body, idempotencyKey, ...input }) {
        const { answer, limits } = await oauth.token({
          ...toClientRequest(input, body),
          retryKey: idempotencyKey,
        })
        return withRateLimits(ok(answer), limits)
      },
    }),
    route({
      ...clientRoute,
      path: '/oauth/device',
      operation: 'authorizeDevice',
      summary: 'Begin to connect a device (RFC 8628)',
      description:
        'Show the person `user_code` and open `verification_uri_complete`, and poll the token endpoint every `interval` seconds. `device_name` is shown to the person. The built-in client `keyway-cli` asks for `keys:create` with the scopes of the key that it will create (`agent:connect` without any).',
      body: deviceForm,
      form: { only: true },
      example: { client_id: CLI_CLIENT_ID, scope: 'keys:create agent:connect', device_name: 'laptop' },
      answers: [answers.okAnswer('The codes.', deviceAnswer, deviceExample(publicUrl))],
      errors: [],
      async handle({ body, ...input }) {
        return ok(await oauth.device(toClientRequest(input, body)))
      },
    }),
    route({
      ...clientRoute,
      path: '/oauth/introspect',
      operation: 'introspectOAuthToken',
      summary: 'Introspect a credential, with a form (RFC 7662)',
      description: 'The same as `/auth/introspect`, for an app that authenticates with Basic or in the form.',
      body: introspectionBody.extend(clientFields),
      form: { numbers: ['consume'] },
      example: { token: answers.EXAMPLE_KEY },
      answers: [
        answers.okAnswer(
          'Whether it is active, and its claims.',
          answers.introspection,
          answers.introspectionExample,
        ),
      ],
      errors: [],
      async handle({ body: { token, consume, ...form }, ...input }) {
        return ok(await oauth.introspect(toClientRequest(input, form), token, consume))
      },
    }),
    route({
      ...clientRoute,
      path: '/oauth/revoke',
      operation: 'revokeOAuthToken',
      summary: 'Revoke a credential, with a form (RFC 7009)',
      description:
        'Ends an API key, or the session of a refresh token or of an app’s access token. Unknown credentials get the same response.',
      cors: 'clients',
      body: revocationBody.extend(clientFields),
      form: {},
      example: { token: answers.EXAMPLE_KEY },
      answers: [{ status: 200, description: 'It is revoked, or was unknown.' }],
      errors: [],
      async handle({ body: { token, ...form }, ...input }) {
        await oauth.revoke(toClientRequest(input, form), token)
        return { status: 200 }
      },
    }),
  ]
}

export function toClientRequest(
  { incoming, caller }: Pick<RouteInput<'public', unknown, unknown>, 'incoming' | 'caller'>,
  fields: Record<string, string | undefined>,
) {
  return { form: fields as Form, header: clientCredentials(incoming), caller }
}
