import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { KeywayError } from '../../src/errors.ts'
import { type Access, createAuthenticate } from '../../src/http/authenticate.ts'
import { caller, openServices } from '../support/services.ts'

const KEY = { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }

/**
 * A server with one route for each kind of access, which answers with the principal. The rule does not depend on the
 * database engine.
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
    principal?: { userId?: string; session?: { id: string } | null; id?: string } | null
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
    const [response] = await once(outgoing, 'response')
    return (await json(response)) as Answer
  }

  const { user, session, tokens } = await services.signIn('ann@example.com')
  const createKey = async (scopes: string[] | null) =>
    (await services.apiKeys.create(user.id, { ...KEY, scopes } as typeof KEY, caller())).key
  const [any, scoped] = [await createKey(null), await createKey(['agent:connect'])]
  return { services, call, user, session, token: tokens.accessToken, any, scoped }
}

test('a public route requires no credential and ignores any', async t => {
  const { call, token } = await open(t)
  for (const header of [undefined, `Bearer ${token}`, 'Bearer', 'nonsense', ['Bearer a', 'Bearer b']])
    assert.deepEqual(await call('public', header), { principal: null })
})

test('a session is accepted by every route of a person, and a key by those that its scopes allow', async t => {
  const { call, user, session, token, any, scoped } = await open(t)
  const routes: Access[] = ['owner', 'session', 'agent:connect']
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
  assertOwner(await call('owner', `Bearer ${any}`))
  assertOwner(await call('agent:connect', `Bearer ${any}`))
  assertPersonOnly(await call('session', `Bearer ${any}`))
  assertOwner(await call('agent:connect', `Bearer ${scoped}`))
  assert.deepEqual(
    await call('owner', `Bearer ${scoped}`),
    insufficientScope('No scope grants this. Use a key without scopes, or sign in.'),
  )
  assertPersonOnly(await call('session', `Bearer ${scoped}`))
  const otherScope = await call('keys:read' as Access, `Bearer ${scoped}`)
  assert.deepEqual(
    otherScope,
    insufficientScope(
      'This API key lacks the scope keys:read. Use a key that has it, or one without scopes.',
    ),
  )
})

test('without a Bearer token the answer says what to send', async t => {
  const { call, any } = await open(t)
  const missingCredential = {
    code: 'authentication_required',
    detail: 'Sign in, or send an API key: Authorization: Bearer <access token or svc_… key>.',
  }
  for (const header of [undefined, 'Bearer-token', any, `Basic ${any}`, `Bearer:${any}`, ` ${any}`])
    assert.deepEqual(await call('owner', header), missingCredential, String(header))
  const malformedToken = { code: 'invalid_token', detail: 'The Bearer token is malformed.' }
  for (const header of [
    'Bearer',
    'Bearer ',
    'Bearer a b',
    'Bearer a"',
    'Bearer =',
    `Bearer "${any}"`,
    `Bearer\t${any}`,
  ])
    assert.equal(
      (await call('owner', header)).code,
      header.includes('\t') ? missingCredential.code : malformedToken.code,
      header,
    )
  assert.deepEqual(await call('owner', 'Bearer a b'), malformedToken)
})

test('the scheme may be in any letter case, followed by any number of spaces', async t => {
  const { call, any, user } = await open(t)
  for (const scheme of ['bearer ', 'BEARER ', 'BeArEr     '])
    assert.equal((await call('owner', scheme + any)).principal?.userId, user.id)
})

test('two Authorization headers are refused, even two that are equal', async t => {
  const { call, any, token } = await open(t)
  for (const both of [
    [`Bearer ${any}`, `Bearer ${any}`],
    [`Bearer ${token}`, `Bearer ${any}`],
    [`Bearer ${any}`, 'Basic YTpi'],
  ])
    assert.deepEqual(await call('owner', both), {
      code: 'invalid_request',
      detail: 'Authorization: must be sent once',
    })
})

test('an agent token is refused with a hint that it is for the hub only; any other wrong token is invalid', async t => {
  const { services, call, any } = await open(t)
  const { token } = await services.agentTokens.exchange(any, undefined, caller())
  const { code, detail } = await call('owner', `Bearer ${token}`)
  assert.equal(code, 'session_required')
  assert.match(detail!, /agent token.*hub.*access token/)
  for (const wrongHeaders of ['abc', `${token}A`, 'svc', 'a.b.c'])
    assert.equal((await call('owner', `Bearer ${wrongHeaders}`)).code, 'invalid_token', wrongHeaders)
  assert.equal((await call('owner', 'Bearer svc_')).code, 'invalid_api_key')
})

test('only a database that cannot be reached is reported as such, whatever the token', async t => {
  const { services, call, token } = await open(t)
  await services.opened.storage.close()
  assert.equal((await call('owner', `Bearer ${token}`)).code, 'unavailable')
})

test('an app is known by its id and secret in a Basic header, and by nothing else', async t => {
  const { services, call, any, token } = await open(t)
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
    `Bearer ${any}`,
  ]
  for (const header of wrongHeaders)
    assert.deepEqual(
      await call('app', header),
      { code: 'authentication_required', detail: 'No registered app has this id and secret.' },
      header,
    )
})
