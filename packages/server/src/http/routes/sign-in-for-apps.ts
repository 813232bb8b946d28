import { z } from 'zod'
import { ok } from '../answer.ts'
import { bearerToken } from '../authenticate.ts'
import type { HttpPorts } from '../http-ports.ts'
import * as answers from '../openapi-schemas.ts'
import { type Route, route } from '../route.ts'
import { clientFields, clientOf, OAUTH_TAG } from './oauth.ts'

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

const pushed = z.strictObject({ request_uri: z.string(), expires_in: z.int() }).meta({ id: 'PushedRequest' })
const pushedExample = {
  request_uri: 'urn:ietf:params:oauth:request_uri:3q2-7w.bm90LWEtcmVhbC1yZXF1ZXN0',
  expires_in: 60,
}

const claims = z
  .strictObject({
    sub: z.string(),
    email: z.string().optional(),
    email_verified: z.boolean().optional(),
    name: z.string().optional(),
  })
  .meta({ id: 'UserInfo' })
const claimsExample = { sub: answers.EXAMPLE_ID, email: 'ada@example.com', email_verified: true, name: 'Ada' }

/** The endpoints for people who sign in to apps that are no pages. */
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
        { status: 201, description: 'The reference to the request.', schema: pushed, example: pushedExample },
      ],
      errors: [],
      async handle({ body, incoming }) {
        const { requestUri, expiresIn } = await oauth.push(clientOf({ incoming }, body))
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
