import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { packSdk } from '@keyway/sdk/pack'
import { ERROR_CODES, type ErrorCode } from '@keyway/sdk/protocol'
import { z } from 'zod'
import { KeywayError } from '../../errors.ts'
import { CREDENTIAL_IN_URL } from '../../hub/handshake.ts'
import { type Answer, ok } from '../answer.ts'
import { DOCS_CONTENT_SECURITY_POLICY } from '../docs-page.ts'
import { ERROR_KINDS } from '../errors.ts'
import { notFound, type Route, route } from '../route.ts'
import type { HealthCheck, HttpServices } from '../services.ts'

/** Seconds; half of the minute by which a signing key is published before it is used. */
const JWKS_MAX_AGE = 30

const TAG = 'Service'
const check = z.strictObject({ name: z.string(), ok: z.boolean(), detail: z.string().optional() })
const readiness = z.strictObject({ status: z.enum(['ready', 'unavailable']), checks: z.array(check) })

const root = z.strictObject({
  name: z.string(),
  version: z.string(),
  hub_url: z.string(),
  openapi_url: z.string(),
  docs_url: z.string(),
  inbox_url: z.string().optional(),
})

const jwk = z.strictObject({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: z.string(),
  kid: z.string(),
  alg: z.literal('EdDSA'),
  use: z.literal('sig'),
})

const explanation = z.strictObject({
  code: z.enum(ERROR_CODES),
  status: z.int(),
  title: z.string(),
  help: z.string(),
})

export interface SystemOptions {
  services: Pick<HttpServices, 'signingKeys' | 'readiness'>
  version: string
  publicUrl: string
  hasInbox: boolean
  proxyMistake: () => string | null
  /** Whether listening address, peer and Host are this machine's own, and no proxy stands between. */
  isLocal: (incoming: IncomingMessage) => boolean
  metrics?: { render(): Promise<{ type: string; body: string }> }
  openApi: () => unknown
  docs: () => string
}

export function systemRoutes(options: SystemOptions): Route[] {
  const { services, publicUrl, version } = options
  const hubUrl = `${publicUrl.replace(/^http/, 'ws')}/hub`
  let openApiText: string | null = null
  let docsText: string | null = null
  let sdk: Promise<Buffer> | null = null

  return [
    route({
      method: 'GET',
      path: '/',
      operation: 'getService',
      tag: TAG,
      summary: 'Where things are',
      description: 'For programs; browsers are sent to the pages.',
      access: 'public',
      answers: [{ status: 200, description: 'Addresses.', schema: root, example: addresses(true) }],
      errors: [],
      handle: ({ incoming }) => ok(addresses(options.isLocal(incoming))),
    }),
    route({
      method: 'GET',
      path: '/.well-known/jwks.json',
      operation: 'getSigningKeys',
      tag: TAG,
      summary: 'The public signing keys (RFC 7517)',
      description:
        'A key is published at least a minute before it signs, and stays until nothing it signed is alive.',
      access: 'public',
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
                kid: '019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11',
                alg: 'EdDSA',
                use: 'sig',
              },
            ],
          },
        },
      ],
      errors: [],
      handle({ incoming }) {
        const body = JSON.stringify(services.signingKeys.jwks())
        const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
        const headers = { 'Cache-Control': `public, max-age=${JWKS_MAX_AGE}`, ETag: etag }
        const isKnown = incoming.headers['if-none-match']?.split(',').some(known => known.trim() === etag)
        return isKnown ? { status: 304, headers } : { status: 200, body, headers }
      },
    }),
    route({
      method: 'GET',
      path: '/livez',
      operation: 'getLiveness',
      tag: TAG,
      summary: 'Whether the process runs',
      description: 'Asks nothing else: a database that is down is no reason to restart this process.',
      access: 'public',
      answers: [
        {
          status: 200,
          description: 'It runs.',
          schema: z.strictObject({ status: z.literal('alive') }),
          example: { status: 'alive' },
        },
      ],
      errors: [],
      handle: () => ok({ status: 'alive' }),
    }),
    route({
      method: 'GET',
      path: '/readyz',
      operation: 'getReadiness',
      tag: TAG,
      summary: 'Whether this node can serve',
      description:
        'Every check by name. Only what is required (the database) makes it 503; the rest is told and stays 200.',
      access: 'public',
      answers: [
        {
          status: 200,
          description: 'Ready.',
          schema: readiness,
          example: { status: 'ready', checks: [{ name: 'database', ok: true }] },
        },
        {
          status: 503,
          description: 'Not ready.',
          schema: readiness,
          example: {
            status: 'unavailable',
            checks: [{ name: 'database', ok: false, detail: 'cannot be reached' }],
          },
        },
      ],
      errors: [],
      async handle() {
        const checks = [...(await services.readiness.checks()), ...proxyCheck()]
        const isReady = checks.every(({ ok, required }) => ok || !required)
        const shown = checks.map(({ name, ok, detail }) => ({ name, ok, ...(detail && { detail }) }))
        const body = { status: isReady ? 'ready' : 'unavailable', checks: shown }
        return isReady ? ok(body) : { status: 503, body, headers: { 'Retry-After': '1' } }
      },
    }),
    route({
      method: 'GET',
      path: '/metrics',
      operation: 'getMetrics',
      tag: TAG,
      summary: 'What Prometheus scrapes',
      description:
        'Only for this machine itself, while the service listens on loopback; otherwise, and behind a proxy, 404. `KEYWAY_METRICS_PORT` serves it on a port of its own instead.',
      access: 'public',
      answers: [
        {
          status: 200,
          description: 'The exposition format of Prometheus.',
          schema: z.string(),
          type: 'text/plain',
        },
      ],
      errors: ['not_found'],
      async handle({ incoming }) {
        if (!options.metrics || !options.isLocal(incoming)) throw notFound()
        return { status: 200, ...(await options.metrics.render()) }
      },
    }),
    route({
      method: 'GET',
      path: '/openapi.json',
      operation: 'getOpenApi',
      tag: TAG,
      summary: 'This document (OpenAPI 3.1)',
      description: 'Made from the schemas that validate and the table that routes.',
      access: 'public',
      answers: [
        { status: 200, description: 'The document.', schema: z.looseObject({ openapi: z.string() }) },
      ],
      errors: [],
      handle() {
        openApiText ??= JSON.stringify(options.openApi())
        return { status: 200, body: openApiText, headers: { 'Cache-Control': 'public, max-age=60' } }
      },
    }),
    route({
      method: 'GET',
      path: '/docs',
      operation: 'getDocs',
      tag: TAG,
      summary: 'This API, for people',
      description: 'One page with every call, an example of it, its answers and its errors.',
      access: 'public',
      answers: [{ status: 200, description: 'The page.', schema: z.string(), type: 'text/html' }],
      errors: [],
      handle() {
        docsText ??= options.docs()
        const headers = { 'Content-Security-Policy': DOCS_CONTENT_SECURITY_POLICY }
        return { status: 200, body: docsText, type: 'text/html; charset=utf-8', headers }
      },
    }),
    route({
      method: 'GET',
      path: '/sdk.tgz',
      operation: 'getSdk',
      tag: TAG,
      summary: 'The npm package @keyway/sdk that fits this version',
      description:
        'To install (`npm install <this address>`) or to run its demo agent (`npx -y <this address>`).',
      access: 'public',
      answers: [{ status: 200, description: 'The package.', schema: z.string(), type: 'application/gzip' }],
      errors: [],
      async handle() {
        sdk ??= packSdk()
        const headers = { 'Cache-Control': 'public, max-age=60' }
        return { status: 200, body: new Uint8Array(await sdk), type: 'application/gzip', headers }
      },
    }),
    route({
      method: 'GET',
      path: '/errors/{code}',
      operation: 'explainError',
      tag: TAG,
      summary: 'What an error code means and what to do',
      description: 'The `type` of every error is such an address.',
      access: 'public',
      answers: [
        {
          status: 200,
          description: 'The explanation.',
          schema: explanation,
          example: explain('rate_limited'),
        },
      ],
      errors: [],
      handle({ params, incoming }) {
        const code = params.code as ErrorCode
        if (!Object.hasOwn(ERROR_KINDS, code)) throw notFound()
        return incoming.headers.accept?.includes('text/html') ? errorPage(code) : ok(explain(code))
      },
    }),
    route({
      method: 'GET',
      path: '/hub',
      operation: 'connectToHub',
      tag: 'Agents',
      summary: 'Connect an agent (WebSocket)',
      description:
        'Upgrade to WebSocket with `Authorization: Bearer <agent token>` and the subprotocol `keyway.hub.v1`. A plain request is answered 426.',
      access: 'public',
      credentialInUrl: () => new KeywayError('invalid_token', CREDENTIAL_IN_URL),
      answers: [],
      errors: ['invalid_token', 'upgrade_required'],
      handle() {
        throw new KeywayError('upgrade_required', `Connect a WebSocket client to ${hubUrl}.`)
      },
    }),
  ]

  function addresses(isLocal: boolean) {
    return {
      name: 'Keyway',
      version,
      hub_url: hubUrl,
      openapi_url: `${publicUrl}/openapi.json`,
      docs_url: `${publicUrl}/docs`,
      ...(options.hasInbox && isLocal && { inbox_url: `${publicUrl}/inbox` }),
    }
  }

  function proxyCheck(): HealthCheck[] {
    const mistake = options.proxyMistake()
    return mistake ? [{ name: 'trusted_proxies', ok: false, required: false, detail: mistake }] : []
  }
}

function explain(code: ErrorCode) {
  const { status, title, help } = ERROR_KINDS[code]
  return { code, status, title, help }
}

/** Only texts of our own table are in it, which hold no markup. */
function errorPage(code: ErrorCode): Answer {
  const { status, title, help } = ERROR_KINDS[code]
  const escaped = help.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${title} – Keyway</title>
<main>
<h1>${title}</h1>
<p><code>${code}</code>, HTTP status ${status}</p>
<p>${escaped}</p>
<p><a href="/docs">API documentation</a></p>
</main>
</html>
`
  return { status: 200, type: 'text/html; charset=utf-8', body }
}
