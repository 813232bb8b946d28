import { z } from 'zod'
import { ok } from '../answer.ts'
import { bearerToken } from '../authenticate.ts'
import { EXAMPLE_IDS } from '../example-ids.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'
import { clientFields, OAUTH_TAG, toClientRequest } from './oauth.ts'

const pushedForm = z
  .object({
    ...clientFields,
    response_type: z.string().optional(),
    redirect_uri: z.string().optional(),
    scope: z.string().optional(),
    state: z.string().optional(),
    nonce: z.string().optional(),
    code_challenge: z.string().optional(),
    code_challenge_method: z.string().optional(),
  })
  .catchall(z.string())

const PUSHED_FORM_EXAMPLE = {
  client_id: 'shop',
  client_secret: 'sva_bm90LWEtcmVhbC1zZWNyZXQ',
  response_type: 'code',
  redirect_uri: 'https://shop.example.com/callback',
  scope: 'openid email',
  state: 'af0ifjsldkj',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256',
}

const pushedRequest = z
  .strictObject({ request_uri: z.string(), expires_in: z.int() })
  .meta({ id: 'PushedRequest' })
const pushedRequestExample = {
  request_uri: 'urn:ietf:params:oauth:request_uri:3q2-7w.bm90LWEtcmVhbC1yZXF1ZXN0',
  expires_in: 60,
}

const claims = z
  .strictObject({
    sub: z.string(),
    email: z.string().optional(),
    email_verified: z.boolean().optional(),
    locale: z.string().optional(),
    name: z.string().optional(),
  })
  .meta({ id: 'UserInfo' })
const claimsExample = { sub: EXAMPLE_IDS.user, email: 'ada@example.com', email_verified: true, name: 'Ada' }

/**
 * The API calls of sign-in to apps by OAuth. The endpoints that are pages, such as `/oauth/authorize`, are in `web/`.
 */
export function signInForAppsRoutes({ oauth }: Pick<HttpPorts, 'oauth'>): Route[] {
  const userInfo = {
    path: '/oauth/userinfo',
    tag: OAUTH_TAG,
    description:
      'For an access token with the scope `openid`, which comes in the Authorization header. `email` and `profile` add claims.',
    access: 'public',
    errorFormat: 'oauth',
    cors: 'clients',
    answers: [answers.okAnswer('The claims that the scopes give.', claims, claimsExample)],
    errors: [],
  } as const
  const handle: Route['handle'] = async ({ incoming }) => ok(await oauth.userinfo(bearerToken(incoming)))

  return [
    ...(oauth.register ? [registrationRoute(oauth.register)] : []),
    route({
      method: 'POST',
      path: '/oauth/par',
      operation: 'pushAuthorizationRequest',
      tag: OAUTH_TAG,
      summary: 'Push an authorization request (RFC 9126)',
      description:
        'Takes the parameters of `/oauth/authorize`, checks them, and returns a `request_uri` that stands for them there. It is good for one code, and must be opened within a minute.',
      access: 'public',
      errorFormat: 'oauth',
      countsFailures: true,
      cors: 'clients',
      body: pushedForm,
      form: { only: true },
      example: PUSHED_FORM_EXAMPLE,
      answers: [
        {
          status: 201,
          description: 'The reference to the request.',
          schema: pushedRequest,
          example: pushedRequestExample,
        },
      ],
      errors: [],
      async handle({ body, ...input }) {
        const { requestUri, expiresIn } = await oauth.push(toClientRequest(input, body))
        return { status: 201, body: { request_uri: requestUri, expires_in: expiresIn } }
      },
    }),
    route({
      ...userInfo,
      method: 'GET',
      operation: 'getUserInfo',
      summary: 'Read the claims about the person who signed in (OpenID Connect)',
      handle,
    }),
    route({
      ...userInfo,
      method: 'POST',
      operation: 'postUserInfo',
      summary: 'The same by POST (OpenID Connect)',
      handle,
    }),
  ]
}

function registrationRoute(register: NonNullable<HttpPorts['oauth']['register']>): Route {
  return route({
    method: 'POST',
    path: '/oauth/register',
    operation: 'registerClient',
    tag: OAUTH_TAG,
    summary: 'Register a client (RFC 7591)',
    description:
      'Only with `KEYWAY_CLIENT_REGISTRATION=true`. The client may ask people for what every app may ask for, always with PKCE. One to which nobody agrees is removed after seven days.',
    access: 'public',
    errorFormat: 'oauth',
    body: registrationBody,
    example: { redirect_uris: ['https://shop.example.com/callback'], client_name: 'The Shop' },
    answers: [
      { status: 201, description: 'The client.', schema: registeredClient, example: registeredClientExample },
    ],
    errors: [],
    async handle({ body, caller }) {
      const { app, authMethod, secret, issuedAt } = await register(body, caller)
      return {
        status: 201,
        body: {
          client_id: app.id,
          client_id_issued_at: issuedAt,
          ...(secret !== null && { client_secret: secret, client_secret_expires_at: 0 }),
          client_name: app.name,
          redirect_uris: app.redirectUris,
          post_logout_redirect_uris: app.logoutUris,
          token_endpoint_auth_method: authMethod,
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
          id_token_signed_response_alg: app.idTokenAlg,
          ...(app.jwksUri !== null && { jwks_uri: app.jwksUri }),
          ...(app.backchannelLogoutUri !== null && { backchannel_logout_uri: app.backchannelLogoutUri }),
        },
      }
    },
  })
}

/** Any object, since clients/client-metadata.ts validates the fields, with the errors of RFC 7591 section 3.2.2. */
const registrationBody = z.looseObject({})

const registeredClient = z
  .looseObject({
    client_id: z.string(),
    client_id_issued_at: z.int(),
    client_secret: z.string().optional(),
    client_secret_expires_at: z.literal(0).optional(),
    redirect_uris: z.array(z.string()),
    token_endpoint_auth_method: z.string(),
  })
  .meta({ id: 'RegisteredClient' })

const registeredClientExample = {
  client_id: 'dyn-019aa2c46f007c1a9d550a8b6b9d2f11',
  client_id_issued_at: 1_795_000_000,
  client_secret: 'sva_bm90LWEtcmVhbC1zZWNyZXQ',
  client_secret_expires_at: 0,
  client_name: 'The Shop',
  redirect_uris: ['https://shop.example.com/callback'],
  token_endpoint_auth_method: 'client_secret_basic',
}
