import { createHash } from 'node:crypto'
import { z } from 'zod'
import { publicFor } from '../../cache-control.ts'
import { JWKS_MAX_AGE_SECONDS } from '../../signing-keys/signing-keys.ts'
import { EXAMPLE_IDS } from '../example-ids.ts'
import type { HttpPorts } from '../http-ports.ts'
import { type Route, route } from '../route.ts'

const commonMembers = { kid: z.string(), use: z.literal('sig') }
const jwk = z.discriminatedUnion('alg', [
  z.strictObject({
    kty: z.literal('OKP'),
    crv: z.literal('Ed25519'),
    x: z.string(),
    alg: z.literal('EdDSA'),
    ...commonMembers,
  }),
  z.strictObject({
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    x: z.string(),
    y: z.string(),
    alg: z.literal('ES256'),
    ...commonMembers,
  }),
  z.strictObject({
    kty: z.literal('RSA'),
    n: z.string(),
    e: z.string(),
    alg: z.literal('RS256'),
    ...commonMembers,
  }),
])

export function jwksRoutes({ signingKeys }: Pick<HttpPorts, 'signingKeys'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/.well-known/jwks.json',
      operation: 'getSigningKeys',
      tag: 'Service',
      summary: 'The public signing keys (RFC 7517)',
      description:
        'A key is published at least a minute before its first use, and until all tokens that it signed have expired.',
      access: 'public',
      cors: 'any',
      answers: [
        {
          status: 200,
          description: 'A JWK Set.',
          schema: z.strictObject({ keys: z.array(jwk) }),
          example: {
            keys: [
              {
                kty: 'OKP',
                crv: 'Ed25519',
                x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
                kid: EXAMPLE_IDS.signing_key,
                alg: 'EdDSA',
                use: 'sig',
              },
            ],
          },
        },
      ],
      errors: [],
      handle({ incoming }) {
        const body = JSON.stringify(signingKeys.jwks())
        const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
        const headers = { 'Cache-Control': publicFor(JWKS_MAX_AGE_SECONDS), ETag: etag }
        const isUnchanged = incoming.headers['if-none-match']?.split(',').some(tag => tag.trim() === etag)
        return isUnchanged ? { status: 304, headers } : { status: 200, body, headers }
      },
    }),
  ]
}
