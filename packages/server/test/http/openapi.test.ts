import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { ERROR_CODES } from '@keyway/sdk/protocol'
import { Validator } from '@seriousme/openapi-schema-validator'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { createOpenApi, errorCodesOf } from '../../src/http/openapi.ts'
import { problem } from '../../src/http/openapi-schemas.ts'
import type { Route } from '../../src/http/route.ts'
import { instantOf, newId } from '../../src/ids.ts'
import { PROBLEMS } from '../../src/problems.ts'
import type { Store } from '../../src/store.ts'
import { basicAuthorization, type CallAnswer, METRICS_TOKEN, openServer } from '../support/http.ts'
import { MAIL_HOOK_SECRET } from '../support/http-ports.ts'
import { createDocumentValidator } from '../support/openapi-validator.ts'

const FORM_TYPE = 'application/x-www-form-urlencoded'

interface Body {
  content: { 'application/json'?: { schema: { additionalProperties?: boolean } } }
}

describe('the API document', () => {
  test('documents every route with summary, description, security and examples', async t => {
    const { app, get } = await openServer('sqlite', t)
    const { body: document } = await get('/openapi.json')
    assert.match(document.openapi, /^3\.1\./)
    const operations = new Set<string>()
    for (const route of app.routes) {
      const operation = document.paths[route.path][route.method.toLowerCase()]
      assert.ok(operation.summary && operation.description && Array.isArray(operation.security), route.path)
      assert.ok(!operations.has(operation.operationId))
      operations.add(operation.operationId)
      const types = [route.form && FORM_TYPE, !route.form?.only && 'application/json'].filter(Boolean)
      for (const type of route.body ? types : [])
        assert.ok(operation.requestBody.content[String(type)].example, `${route.operation} example`)
      for (const code of errorCodesOf(route)) {
        const { status } = PROBLEMS[code]
        if (!route.answers.some(answer => answer.status === status)) {
          assert.ok(operation.responses[status].content['application/problem+json'].examples[code])
        }
      }
      for (const { schema, example } of route.answers) {
        if (schema && example !== undefined) schema.parse(example)
      }
    }
    assert.equal(
      Object.values(document.paths).flatMap(path => Object.keys(path as object)).length,
      app.routes.length,
    )
    assert.ok(document.tags.every((tag: { description: string }) => tag.description.length > 20))
    const text = JSON.stringify(document)
    assert.doesNotMatch(text, /"type":"number"/, 'every number is an integer')
    for (const [, name] of text.matchAll(/"#\/components\/(?:schemas|examples)\/(\w+)"/g)) {
      assert.ok(document.components.schemas[name!] ?? document.components.examples[name!], String(name))
    }
    assert.doesNotMatch(text, /\$defs/)
  })

  test('says that scopes may be omitted for a key that is created, and not for one that is imported', async t => {
    const { get } = await openServer('sqlite', t)
    const { body: document } = await get('/openapi.json')
    const bodyOf = (path: string) =>
      document.paths[path].post.requestBody.content['application/json'].schema.properties
    const newScopesDescription = bodyOf('/v1/api-keys').scopes.description
    const importedScopesDescription =
      bodyOf('/v1/admin/api-keys/import').keys.items.properties.scopes.description
    assert.match(newScopesDescription, /Omitted or empty: all permissions\.$/)
    assert.match(importedScopesDescription, /Required; an empty list means all permissions\.$/)
  })

  test('has a different example id for each kind of object, the same in a call and its answer', async t => {
    const { get } = await openServer('sqlite', t)
    const { body: document } = await get('/openapi.json')
    const { put, patch } = document.paths['/v1/api-keys/{key_id}']
    const [parameter] = (patch ?? put).parameters
    const { example } = (patch ?? put).responses[200].content['application/json']
    assert.equal(parameter.name, 'key_id')
    assert.equal(example.id, parameter.example)
    assert.notEqual(example.user_id, parameter.example)
    const kindsOf = new Map<string, Set<string>>()
    const recordId = (name: string, id: unknown) => {
      // The id of a subject or of a client may be that of any kind of object.
      if (!/^019aa2c4-/.test(String(id)) || !/(?<!subject|client)_id$/.test(name)) return
      // An agent's `agent_id` is the id of its owner.
      const kind = name === 'agent_id' ? 'user_id' : name
      kindsOf.set(String(id), (kindsOf.get(String(id)) ?? new Set()).add(kind))
    }
    JSON.stringify(document, function (this: { name?: string; in?: string }, name, value) {
      recordId(name === 'example' && this.in === 'path' ? String(this.name) : name, value)
      return value
    })
    assert.ok(kindsOf.size > 5)
    for (const [id, names] of kindsOf) assert.equal(names.size, 1, `${id} is ${[...names].join(' and ')}`)
  })

  test('marks the bodies that refuse unknown fields: those that create or change a credential', async t => {
    const { app } = await openServer('sqlite', t)
    const document = createOpenApi(app.routes, { publicUrl: 'https://keyway.test', version: '0.0.0' })
    const strictRoutes = app.routes.filter(({ path, method }) => {
      const body = (document.paths[path]![method.toLowerCase()] as { requestBody?: Body }).requestBody
      return body?.content['application/json']?.schema.additionalProperties === false
    })
    assert.deepEqual(
      strictRoutes.map(({ operation }) => operation),
      [
        'createApiKey',
        'updateApiKey',
        'rotateApiKey',
        'updateUser',
        'grantCredit',
        'limitApiKey',
        'revokeApiKeys',
        'registerApp',
        'updateApp',
        'createAppSecret',
        'sendTestMail',
        'rotateSigningKeys',
        'changePolicies',
        'invite',
        'createWebhook',
        'updateWebhook',
        'createWebhookSecret',
        'importApiKeys',
        'importUsers',
      ],
    )
  })

  test('is valid OpenAPI 3.1 under a public validator', async t => {
    const { get } = await openServer('sqlite', t)
    const validator = new Validator()
    const { valid, errors } = await validator.validate((await get('/openapi.json')).body)
    assert.ok(valid, JSON.stringify(errors))
    assert.equal(validator.version, '3.1')
  })

  test('its example requests succeed, and responses match the schemas', async t => {
    const fixture = await openWorld(t)
    // Routes that end sessions come last, since the others need the session.
    const routes = fixture.server.app.routes.toSorted((a, b) => endingRank(a) - endingRank(b))
    const { body: document } = await fixture.server.get('/openapi.json')
    const validator = createDocumentValidator(document)
    for (const route of routes) {
      const answer = await fixture.callExample(route)
      assert.equal(
        validator.problemOf(route.method, route.path, answer),
        null,
        `${route.operation} ${answer.text}`,
      )
      const documentedAnswer = route.answers.find(({ status }) => status === answer.status)
      const title = `${route.method} ${route.path}: ${answer.status} ${answer.text}`
      if (route.operation === 'connectToHub') assert.equal(answer.status, 426)
      else if (documentedAnswer?.schema) documentedAnswer.schema.parse(answer.body ?? answer.text)
      else if (documentedAnswer) assert.equal(answer.text, '', title)
      else {
        // The example has an invalid token.
        if (route.operation === 'confirmEmail') {
          assert.equal(answer.body.errors[0].field, 'token')
          continue
        }
        // No agent is connected, so these are 404.
        assert.match(route.path, /^\/v1\/(?:admin\/)?agents\/\{/, title)
        assert.equal(answer.body.code, 'not_found', title)
      }
    }
  })
})

test('every error code is explained as JSON', async t => {
  const { get } = await openServer('sqlite', t)
  for (const code of ERROR_CODES) {
    const { body } = await get(`/errors/${code}`)
    assert.equal(body.code, code)
    assert.ok(body.help.length > 10)
  }
  assert.equal((await get('/errors/toString')).status, 404)
  assert.equal((await get('/errors/__proto__')).status, 404)
})

test('every refusal is a problem document without internal details', async t => {
  const { server, callExample } = await openWorld(t)
  const { app, call } = server
  const refusals: CallAnswer[] = []
  for (const route of app.routes) {
    const path = route.path.replaceAll(/\{\w+\}/g, 'nothing')
    refusals.push(await call(route.method, path), await call('PROPFIND', path))
    if (!route.body) continue
    refusals.push(
      await call(route.method, path, { body: '{', headers: { 'Content-Type': 'application/json' } }),
      await call(route.method, path, { body: 'x', headers: { 'Content-Type': 'text/plain' } }),
      await call(route.method, path, { body: 'x'.repeat(17_000) }),
    )
  }
  refusals.push(
    await call('GET', '/nowhere'),
    await call('GET', '/v1/nowhere'),
    await callExample(app.routes[0]!),
  )
  const problemAnswers = refusals.filter(({ status }) => status >= 400)
  assert.ok(problemAnswers.length > 50)
  for (const { status, headers, body, text } of problemAnswers) {
    assertRefusal(body, status)
    assert.ok(status < 500, text)
    assert.match(headers.get('x-request-id')!, /^[0-9a-f-]{36}$/)
    assert.match(
      headers.get('content-type')!,
      body.error ? /^application\/json/ : /^application\/problem\+json$/,
    )
    assert.equal(body.request_id ?? headers.get('x-request-id'), headers.get('x-request-id'))
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('x-powered-by') ?? headers.get('server'), null)
    assert.equal(headers.get('set-cookie'), null)
    assert.doesNotMatch(text, /node_modules|\.ts:|at \w+ \(|select |insert /i)
  }
})

/** Asserts that the body is a problem document with this status, or for OAuth clients an error of RFC 6749. */
function assertRefusal(body: CallAnswer['body'], status: number): void {
  if (body.error === undefined) {
    problem.parse(body)
    assert.equal(body.status, status)
  } else {
    assert.deepEqual(Object.keys(body), ['error', 'error_description'])
    assert.match(body.error, /^[a-z_]+$/)
    assert.match(body.error_description, /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
  }
}

/** Creates a webhook whose endpoint does not answer, with two secrets and a failed delivery. Returns their ids. */
async function idsOfNewWebhook({ webhooks }: Awaited<ReturnType<typeof openServer>>) {
  const webhookOperations = await webhooks()
  const endpoint = { url: 'http://127.0.0.1:1/', events: [] }
  const { webhook } = await webhookOperations.create(endpoint, BY_COMMAND_LINE)
  const secret = await webhookOperations.addSecret(webhook.id, BY_COMMAND_LINE)
  const { id } = await webhookOperations.test(webhook.id, BY_COMMAND_LINE)
  return { '{webhook_id}': webhook.id, '{delivery_id}': id, '{secret_id}': secret.id }
}

/** A server with the objects of the examples; `callExample` creates those that a call may end. */
async function openWorld(t: TestContext) {
  const server = await openServer('sqlite', t, {
    webhookPrivateNetworks: ['127.0.0.0/8'],
    maxActiveKeys: 1000,
  })
  const { tokens, user, session } = await server.signIn('ada@example.com')
  await server.users.setRole(user.id, 'admin')
  // Another administrator, so that no example acts on the last one.
  await server.users.setRole((await server.signIn('eve@example.com')).user.id, 'admin')
  const secret = await server.registerApp('reports')
  await server.call('PUT', '/v1/me/charge-authorizations/reports', { token: tokens.accessToken })
  const now = server.clock.now()
  await server.storage.transaction(tx =>
    tx.consents.grant({ id: newId(now), userId: user.id, appId: 'console', scopes: [], grantedAt: now }, now),
  )

  const { secret: client_secret } = await server.apps.register({
    id: 'shop',
    name: 'Shop',
    redirectUris: ['https://shop.example.com/callback'],
  })
  const clientCredentials = { client_id: 'shop', client_secret: client_secret! }

  async function appToken(): Promise<string> {
    const grant = { scopes: ['openid', 'email'], audience: null }
    const preparedSession = server.sessions.prepareForApp('shop', grant, now, server.caller())
    const appSession = await server.storage.transaction(tx => server.sessions.open(tx, user, preparedSession))
    return (await server.sessions.appTokens(user, appSession)).accessToken
  }

  async function callExample(route: Route): Promise<CallAnswer> {
    const key = await server.createKey(tokens.accessToken)
    const person = await server.signIn(`${newId(server.clock.now())}@example.com`)
    const mailId = newId(server.clock.now())
    await insertFailedMail(server.store, mailId, user.id)
    const otherSession = await server.signIn('ada@example.com')
    const link = await server.sendTo('ada@example.com')
    const guest = { email: `${newId(server.clock.now())}@example.net` as never, role: null }
    const invitation = await server.invitations.invite(guest, BY_COMMAND_LINE)
    const example = route.example as Record<string, unknown> | undefined
    const replacements: Record<string, unknown> = {
      api_key: key.key,
      refresh_token: otherSession.tokens.refreshToken,
      user_id: user.id,
      token: route.operation === 'verifyMagicLink' ? link.token : key.key,
      ...(example?.client_secret !== undefined && { client_id: key.id, client_secret: key.key }),
    }
    const body =
      example &&
      Object.fromEntries(Object.entries(example).map(([name, value]) => [name, replacements[name] ?? value]))
    const ids: Record<string, string> = {
      '{key_id}': key.id,
      '{session_id}': otherSession.session.id,
      '{app_id}':
        ({ removeApp: 'reports', removeAppSecret: 'hub' } as Record<string, string>)[route.operation] ??
        'console',
      '{code}': 'rate_limited',
      '{connection_id}': session.id,
      '{provider}': 'postmark',
      '{user_id}': person.user.id,
      '{mail_id}': mailId,
      '{invitation_id}': invitation.id,
      '{address}': 'ada@example.com',
      '{secret_id}': route.operation === 'removeAppSecret' ? (await server.apps.newSecret('hub')).id : '',
      ...(/\{(?:webhook|delivery)_id\}/.test(route.path) && (await idsOfNewWebhook(server))),
    }
    if (route.path.includes('{version}'))
      return getPackage(route.path.endsWith('.whl') ? '/sdk.whl' : '/sdk.tgz')
    const path = route.path.replaceAll(/\{\w+\}/g, name => ids[name]!)
    const authorization: Record<string, string> =
      route.access === 'app'
        ? basicAuthorization('reports', secret)
        : { Authorization: `Bearer ${tokens.accessToken}` }
    const headers = { ...authorization, 'Idempotency-Key': newId(server.clock.now()) }
    if (route.operation === 'getMetrics')
      return await server.call(route.method, path, { token: METRICS_TOKEN })
    if (route.operation === 'receiveMailHook') {
      const report = { RecordType: 'SpamComplaint', Email: 'complains@example.com' }
      return await server.call(route.method, path, {
        body: report,
        headers: basicAuthorization('keyway', MAIL_HOOK_SECRET),
      })
    }
    if (route.operation === 'introspectOAuthToken')
      return await server.form(path, { token: key.key }, basicAuthorization('reports', secret))
    if (route.operation === 'pushAuthorizationRequest')
      return await server.form(path, { ...(example as Record<string, string>), ...clientCredentials })
    if (path === '/oauth/userinfo') return await server.call(route.method, path, { token: await appToken() })
    if (route.errorFormat === 'oauth') return await server.form(path, body as Record<string, string>)
    return await server.call(route.method, path, { body, headers })
  }
  /** Gets the package of the version that the unversioned path `latest` redirects to. */
  async function getPackage(latest: string): Promise<CallAnswer> {
    const { headers } = await server.get(latest)
    return server.get(headers.get('location')!)
  }

  return { server, callExample }
}

/** Queues a mail whose delivery has failed. */
function insertFailedMail({ outbox }: Store, id: string, userId: string): Promise<boolean> {
  return outbox.insert({
    id,
    kind: 'welcome',
    recipient: 'ada@example.com' as never,
    userId,
    sealedContent: 'sealed',
    state: 'failed',
    attempts: 3,
    createdAt: instantOf(id),
    nextAttemptAt: instantOf(id),
    sendBefore: null,
    leasedUntil: null,
    settledAt: instantOf(id),
    lastError: 'refused',
  })
}

function endingRank({ operation }: Route): number {
  return ['withdrawCharges', 'removeApp', 'endOtherSessions', 'logOut'].indexOf(operation)
}
