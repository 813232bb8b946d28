import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, IncomingMessage, request } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { json } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { CLI_CLIENT_ID } from '../../src/apps/app.ts'
import { KeywayError } from '../../src/errors.ts'
import { type Access, clientCredentials, createAuthenticate } from '../../src/http/authenticate.ts'
import { onceInTime } from '../support/patience.ts'
import { caller, openServices } from '../support/services.ts'

const NEW_KEY = { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }

/**
 * A server with one route for each kind of access, which answers with the principal. It uses SQLite, since
 * authentication is the same on both engines.
 */
async function open(t: TestContext) {
  const services = await openServices('sqlite', t)
  const authenticate = createAuthenticate(services)
  const server = createServer((incoming, response) => {
    authenticate(incoming.url!.slice(1) as Access, incoming, caller()).then(
      principal => response.end(JSON.stringify({ principal })),
      error => {
        if (!(error instanceof KeywayError)) return response.end(JSON.stringify({ error: String(error) }))
        response.end(JSON.stringify({ code: error.code, detail: error.message }))
      },
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo

  interface Answer {
    principal?: {
      userId?: string
      session?: { id: string } | null
      appSession?: { id: string }
      id?: string
    } | null
    code?: string
    detail?: string
  }
  /** @param authorization the header's value, or all of its values */
  async function call(access: Access, authorization?: string | string[]): Promise<Answer> {
    const values = [authorization ?? []].flat()
    const outgoing = request({
      host: '127.0.0.1',
      port,
      path: `/${access}`,
      agent: false,
      headers: values.length > 0 ? ['Host', 'x', ...values.flatMap(value => ['Authorization', value])] : {},
    }).end()
    const [response] = await onceInTime(outgoing, 'response')
    return (await json(response)) as Answer
  }

  const { user, session, tokens } = await services.signIn('ann@example.com')
  const createKey = async (scopes: string[] | null) =>
    (await services.apiKeys.create(user.id, { ...NEW_KEY, scopes } as typeof NEW_KEY, caller())).key
  const [unrestrictedKey, scopedKey] = [await createKey(null), await createKey(['agent:connect'])]
  return { services, call, createKey, user, session, token: tokens.accessToken, unrestrictedKey, scopedKey }
}

test('a public route requires no credential and ignores any', async t => {
  const { call, token } = await open(t)
  for (const header of [undefined, `Bearer ${token}`, 'Bearer', 'nonsense', ['Bearer a', 'Bearer b']])
    assert.deepEqual(await call('public', header), { principal: null })
})

test('a session is accepted by every route of a person, and a key by those that its scopes allow', async t => {
  const { call, user, session, token, unrestrictedKey, scopedKey } = await open(t)
  const routes: Access[] = ['owner', 'session', 'keys:create', 'agent:connect']
  for (const access of routes) {
    const { principal } = await call(access, `Bearer ${token}`)
    assert.deepEqual([principal?.userId, principal?.session?.id], [user.id, session.id], access)
  }
  const assertOwner = ({ principal }: Awaited<ReturnType<typeof call>>) =>
    assert.deepEqual([principal?.userId, principal?.session], [user.id, null])
  const assertPersonOnly = ({ code, detail }: { code?: string; detail?: string }) => {
    assert.equal(code, 'session_required')
    assert.match(detail!, /signed-in person.*access token/)
  }
  const insufficientScope = (detail: string) => ({ code: 'insufficient_scope', detail })
  assertOwner(await call('owner', `Bearer ${unrestrictedKey}`))
  assertOwner(await call('agent:connect', `Bearer ${unrestrictedKey}`))
  for (const access of ['session', 'keys:create'] as const)
    for (const key of [unrestrictedKey, scopedKey]) assertPersonOnly(await call(access, `Bearer ${key}`))
  assertOwner(await call('agent:connect', `Bearer ${scopedKey}`))
  assert.deepEqual(
    await call('owner', `Bearer ${scopedKey}`),
    insufficientScope('No scope grants this. Use a key without scopes, or sign in.'),
  )
  const answerToOtherScope = await call('keys:read' as Access, `Bearer ${scopedKey}`)
  assert.deepEqual(
    answerToOtherScope,
    insufficientScope(
      'This API key lacks the scope keys:read. Use a key that has it, or one without scopes.',
    ),
  )
})

test('without a Bearer token the answer says what to send', async t => {
  const { call, unrestrictedKey } = await open(t)
  const missingCredentialError = {
    code: 'authentication_required',
    detail: 'Sign in, or send an API key: Authorization: Bearer <access token or svc_… key>.',
  }
  for (const header of [
    undefined,
    'Bearer-token',
    unrestrictedKey,
    `Basic ${unrestrictedKey}`,
    `Bearer:${unrestrictedKey}`,
    ` ${unrestrictedKey}`,
  ])
    assert.deepEqual(await call('owner', header), missingCredentialError, String(header))
  const malformedTokenError = { code: 'invalid_token', detail: 'The Bearer token is malformed.' }
  for (const header of [
    'Bearer',
    'Bearer ',
    'Bearer a b',
    'Bearer a"',
    'Bearer =',
    `Bearer "${unrestrictedKey}"`,
    `Bearer\t${unrestrictedKey}`,
  ])
    assert.equal(
      (await call('owner', header)).code,
      header.includes('\t') ? missingCredentialError.code : malformedTokenError.code,
      header,
    )
  for (const header of ['Bearer', 'Bearer a b'])
    assert.deepEqual(await call('owner', header), malformedTokenError)
})

test('the scheme may be in any letter case, followed by any number of spaces', async t => {
  const { call, unrestrictedKey, user } = await open(t)
  for (const scheme of ['bearer ', 'BEARER ', 'BeArEr     '])
    assert.equal((await call('owner', scheme + unrestrictedKey)).principal?.userId, user.id)
})

test('two Authorization headers are refused, even two that are equal', async t => {
  const { call, unrestrictedKey, token } = await open(t)
  for (const both of [
    [`Bearer ${unrestrictedKey}`, `Bearer ${unrestrictedKey}`],
    [`Bearer ${token}`, `Bearer ${unrestrictedKey}`],
    [`Bearer ${unrestrictedKey}`, 'Basic YTpi'],
  ])
    assert.deepEqual(await call('owner', both), {
      code: 'invalid_request',
      detail: 'Authorization: must be sent once',
    })
})

test('an agent token is refused with a hint that it is for the hub only; any other wrong token is invalid', async t => {
  const { services, call, unrestrictedKey } = await open(t)
  const { token } = await services.agentTokens.exchange(unrestrictedKey, undefined, caller())
  const { code, detail } = await call('owner', `Bearer ${token}`)
  assert.equal(code, 'session_required')
  assert.match(detail!, /agent token.*hub.*access token/)
  for (const wrongHeaders of ['abc', `${token}A`, 'svc', 'a.b.c'])
    assert.equal((await call('owner', `Bearer ${wrongHeaders}`)).code, 'invalid_token', wrongHeaders)
  for (const wrongKey of ['svc_', `svc_${'0'.repeat(32)}`])
    assert.equal((await call('owner', `Bearer ${wrongKey}`)).code, 'invalid_api_key')
})

test('only a database that cannot be reached is reported as such, whatever the token', async t => {
  const { services, call, token } = await open(t)
  await services.opened.storage.close()
  assert.equal((await call('owner', `Bearer ${token}`)).code, 'unavailable')
})

test('an app is known by its id and secret in a Basic header, and by nothing else', async t => {
  const { services, call, unrestrictedKey, token } = await open(t)
  await services.apps.register({ id: 'shop', name: 'The shop', audience: null, verifyUrl: null })
  const secret = (await services.apps.newSecret('shop')).secret
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
  assert.equal((await call('app', basic(`shop:${secret}`))).principal?.id, 'shop')
  assert.equal((await call('app', basic(`shop:${secret}`).replace('Basic', 'bAsIc  '))).principal?.id, 'shop')
  assert.deepEqual(await call('app'), {
    code: 'authentication_required',
    detail: "Send the app's id and secret: Authorization: Basic base64(id:secret).",
  })
  const wrongHeaders = [
    basic(`shop:${secret}x`),
    basic(`shop${secret}`),
    basic(`:${secret}`),
    basic('shop:'),
    basic(''),
    basic(`other:${secret}`),
    `Basic shop:${secret}`,
    `Basic ${Buffer.from(`shop:${secret}`).toString('base64')} x`,
    'Basic',
    `Bearer ${secret}`,
    `Bearer ${token}`,
    `Bearer ${unrestrictedKey}`,
  ]
  for (const header of wrongHeaders)
    assert.deepEqual(
      await call('app', header),
      { code: 'authentication_required', detail: 'No registered app has this id and secret.' },
      header,
    )
})

test('support may read, administrators may do all, and nobody else has administrative access', async t => {
  const { services, call, createKey, user, token } = await open(t)
  const codesFor = async (credential: string) => {
    const answers: string[] = []
    for (const access of ['admin:read', 'admin:write', 'admin:session'] as const) {
      const { code, principal } = await call(access, `Bearer ${credential}`)
      answers.push(code ?? (principal?.session ? 'session' : 'key'))
    }
    return answers
  }
  const { user: otherAdministrator } = await services.signIn('eve@example.com')
  for (const { id } of [user, otherAdministrator]) await services.users.setRole(id, 'admin')
  const key = await createKey(['admin:read', 'admin:write'])
  await services.users.setRole(user.id, 'user')
  assert.deepEqual(await codesFor(token), ['forbidden', 'forbidden', 'forbidden'])
  assert.deepEqual(await codesFor(key), ['forbidden', 'forbidden', 'session_required'])
  await services.users.setRole(user.id, 'support')
  assert.deepEqual(await codesFor(token), ['session', 'forbidden', 'forbidden'])
  assert.deepEqual(await codesFor(key), ['forbidden', 'forbidden', 'session_required'])
  await services.users.setRole(user.id, 'admin')
  assert.deepEqual(await codesFor(token), ['session', 'session', 'session'])
  assert.deepEqual(await codesFor(key), ['key', 'key', 'session_required'])
  const { detail } = await call('admin:session', `Bearer ${key}`)
  assert.match(detail!, /needs a signed-in administrator.*access token/)
})

test('an app acts for a person within the scopes of its access token only', async t => {
  const { services, call, user } = await open(t)
  await services.apps.register({ id: 'shop', name: 'Shop', audience: null })
  await services.users.setRole(user.id, 'admin')
  const tokenWith = async (scopes: string[], app = 'shop') => {
    const grant = { scopes, audience: null }
    const prepared = services.sessions.prepareForApp(app, grant, services.clock.now(), caller())
    const session = await services.storage.transaction(tx => services.sessions.open(tx, user, prepared))
    const { accessToken } = await services.sessions.appTokens(user, session)
    return { session, header: `Bearer ${accessToken}` }
  }
  const { session, header } = await tokenWith(['openid', 'account:read'])
  const { principal } = await call('account:read', header)
  assert.deepEqual(
    [principal?.userId, principal?.session, principal?.appSession?.id],
    [user.id, null, session.id],
  )
  const { header: approvedHeader } = await tokenWith(['keys:create'], CLI_CLIENT_ID)
  assert.equal((await call('keys:create', approvedHeader)).principal?.userId, user.id)
  const refusals: [Access, string, RegExp][] = [
    ['keys:read', 'insufficient_scope', /lacks the scope keys:read/],
    ['owner', 'insufficient_scope', /^No scope of an app grants this/],
    ['admin:read', 'insufficient_scope', /^No scope of an app grants this/],
    ['admin:session', 'insufficient_scope', /^No scope of an app grants this/],
    ['session', 'session_required', /signed-in person.*not an app's access token/],
    ['keys:create', 'session_required', /signed-in person.*not an app's access token/],
  ]
  for (const [access, expected, explanation] of refusals) {
    const { code, detail } = await call(access, header)
    assert.equal(code, expected, access)
    assert.match(detail!, explanation, access)
  }
})

test('a client sends its id and secret form-encoded in a Basic header', () => {
  const credentialsOf = (...values: string[]) => {
    const incoming = new IncomingMessage(new Socket())
    const headers = { authorization: values[0] }
    const headersDistinct = { authorization: values }
    return clientCredentials(Object.assign(incoming, values.length > 0 && { headers, headersDistinct }))
  }
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
  assert.equal(credentialsOf(), null)
  assert.deepEqual(credentialsOf(basic('my+shop%3A1:a%2Bb:c')), { id: 'my shop:1', secret: 'a+b:c' })
  for (const header of [basic('shop'), basic('shop:'), basic(':secret'), basic('shop:%'), basic('%:secret')])
    assert.equal(credentialsOf(header), 'unusable', header)
  for (const scheme of ['Bearer', 'Basic x', '']) {
    const header = basic('shop:secret').replace('Basic', scheme)
    assert.equal(credentialsOf(header), 'unusable', header)
  }
  assert.throws(() => credentialsOf(basic('a:b'), basic('a:b')), { code: 'invalid_request' })
})
