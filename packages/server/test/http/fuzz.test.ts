import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { paramNames } from '../../src/http/route.ts'
import { anyText } from '../support/any-text.ts'
import { basicAuthorization, openServer } from '../support/http.ts'

const RUNS = 1500
/** The processor time above which a request fails the test. A busy machine would prolong its real time. */
const SLOW_MICROSECONDS = 2_000_000
const seed = Number(process.env.KEYWAY_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))

const FIELDS = [
  'email',
  'token',
  'app_id',
  'login_id',
  'code',
  'refresh_token',
  'api_key',
  'audience',
  'name',
  'scopes',
  'expires_at',
  'allowed_networks',
  'overlap_seconds',
  'data',
  'user_id',
  'amount',
  'description',
  '__proto__',
]

const FORM_FIELDS = [
  'grant_type',
  'client_id',
  'client_secret',
  'scope',
  'resource',
  'audience',
  'subject_token',
  'subject_token_type',
  'requested_token_type',
  'token',
  'token_type_hint',
  'consume',
  '__proto__',
]

function plausibleParameter(key: string, id: string, secret: string) {
  return fc.constantFrom(
    'client_credentials',
    'authorization_code',
    'refresh_token',
    'urn:ietf:params:oauth:grant-type:token-exchange',
    'urn:ietf:params:oauth:grant-type:device_code',
    'urn:keyway:token-type:api-key',
    'agent:connect',
    'reports',
    'console',
    'https://keyway.test/hub',
    key,
    id,
    secret,
    '1',
    '',
  )
}

test(`no request that anyone can make up is answered with 5xx (seed ${seed})`, async t => {
  const server = await openServer('sqlite', t, { failureLimits: [{ window: 'minute', limit: 1_000_000 }] })
  const { tokens, user } = await server.signIn('ada@example.com')
  const { id, key } = await server.createKey(tokens.accessToken)
  const secret = await server.registerApp('reports')
  const link = await server.sendTo('bob@example.com')

  const plausibleValue = fc.constantFrom<unknown>(
    'ada@example.com',
    link.token,
    link.loginId,
    link.code,
    tokens.refreshToken.slice(0, -1),
    key,
    id,
    user.id,
    'console',
    ['agent:connect'],
    ['10.0.0.0/8'],
    '2030-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999999999-23:59',
    '0.25',
    0,
    -1,
    2592000,
    1e308,
    null,
    true,
    {},
    [],
    '',
    '\0',
    '\ud800',
    '😀'.repeat(300),
    '%00',
    "' or 1=1 --",
  )
  const anyValue = fc.oneof(
    plausibleValue,
    fc.json().map(text => JSON.parse(text)),
    anyText(),
  )
  const body = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.dictionary(fc.constantFrom(...FIELDS), anyValue).map(fields => JSON.stringify(fields)),
    },
    { weight: 1, arbitrary: fc.json() },
    { weight: 1, arbitrary: fc.string() },
  )
  /** Requests of OAuth clients, with known fields and random ones. */
  const form = fc
    .array(
      fc.tuple(fc.constantFrom(...FORM_FIELDS), fc.oneof(plausibleParameter(key, id, secret), anyText())),
    )
    .map(fields => new URLSearchParams(fields.map(([name, text]) => [name, text.toWellFormed()])).toString())
  const segment = fc.oneof(
    fc.constantFrom(
      id,
      user.id,
      'console',
      'rate_limited',
      '%00',
      '%ff',
      '..%2f',
      '__proto__',
      'x'.repeat(300),
    ),
    anyText().map(text => encodeURIComponent(text.toWellFormed())),
  )
  const query = fc.oneof(
    { weight: 3, arbitrary: fc.constant('') },
    {
      weight: 1,
      arbitrary: fc
        .dictionary(fc.constantFrom('limit', 'cursor', 'status', 'x', 'token'), anyText())
        .map(
          fields =>
            `?${new URLSearchParams(Object.entries(fields).map(([name, text]) => [name, text.toWellFormed()]))}`,
        ),
    },
  )
  const authorization = fc.oneof(
    { weight: 4, arbitrary: fc.constant(`Bearer ${tokens.accessToken}`) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        `Bearer ${key}`,
        'Bearer x.y.z',
        'Basic Og==',
        'Bearer',
        `Bearer svc_${'0'.repeat(32)}`,
      ),
    },
    { weight: 2, arbitrary: fc.constant(basicAuthorization('reports', secret).Authorization!) },
  )
  // Leaves out the route that ends the session, which the rest of the run needs.
  const routes = server.app.routes.filter(({ operation }) => operation !== 'endSession')
  const anyRequest = fc.record({
    route: fc.constantFrom(...routes),
    segments: fc.array(segment, { minLength: 2, maxLength: 2 }),
    query,
    body,
    form: fc.oneof({ weight: 4, arbitrary: form }, { weight: 1, arbitrary: fc.string() }),
    authorization,
    idempotencyKey: fc.oneof(
      fc.constant('u5d1Zp8yQm4kR0vT2xWc'),
      fc.string({ unit: 'grapheme-ascii', maxLength: 20 }).map(text => text.trim()),
    ),
  })

  await fc.assert(
    fc.asyncProperty(
      anyRequest,
      async ({ route, segments, query, authorization, idempotencyKey, ...bodies }) => {
        const names = paramNames(route.path)
        const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name) => segments[names.indexOf(name)]!)
        const body = route.form ? bodies.form : bodies.body
        const cpuBefore = process.threadCpuUsage()
        const answer = await server.call(route.method, path + query, {
          headers: {
            Authorization: authorization,
            'Idempotency-Key': idempotencyKey,
            ...(route.form && { 'Content-Type': 'application/x-www-form-urlencoded' }),
          },
          body: route.body ? body : undefined,
        })
        assert.ok(answer.status < 500, `${route.method} ${path}${query} ${body}: ${answer.text}`)
        const { user, system } = process.threadCpuUsage(cpuBefore)
        assert.ok(user + system < SLOW_MICROSECONDS, `${route.method} ${path} took too long`)
        assert.ok(answer.headers.get('x-request-id'))
      },
    ),
    { numRuns: RUNS, seed },
  )
  // Signs in again: a request with the key may have ended all sessions (DELETE /v1/sessions).
  const { tokens: fresh } = await server.signIn('ada@example.com')
  assert.equal((await server.get('/v1/me', { token: fresh.accessToken })).status, 200)
})
