import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine } from '../support/engines.ts'
import { caller, type SignedInUser } from '../support/services.ts'
import type { WebServer } from '../support/web.ts'
import { newPerson, startRunning } from './running.ts'

const DEVICE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code'

forEachEngine(engine => {
  test('discovery names the device grant, whose requests and polls are answered as RFC 8628 says', async t => {
    const web = await startRunning(engine, t)
    const discovery = await (await fetch(`${web.url}/.well-known/oauth-authorization-server`)).json()
    assert.equal(discovery.device_authorization_endpoint, `${web.url}/oauth/device`)
    assert.ok(discovery.grant_types_supported.includes(DEVICE_GRANT_TYPE))
    const requestAnswer = await post(web, '/oauth/device', { client_id: 'keyway-cli', device_name: 'laptop' })
    assert.equal(requestAnswer.status, 200)
    const { device_code, user_code, ...codes } = requestAnswer.body
    assert.match(user_code, /^[B-Z]{4}-[B-Z]{4}$/)
    assert.equal(codes.verification_uri, `${web.url}/device`)
    assert.deepEqual([codes.expires_in, codes.interval], [600, 5])
    assert.ok(codes.verification_uri_complete.startsWith(`${web.url}/device?user_code=${user_code}&ticket=`))

    const poll = () => post(web, '/oauth/token', pollOf(device_code))
    assert.deepEqual(await errorOf(poll()), [400, 'authorization_pending'])
    assert.deepEqual(await errorOf(poll()), [400, 'slow_down'])
    await approve(web, codes.verification_uri_complete)
    const tokenAnswer = await poll()
    assert.deepEqual([tokenAnswer.status, tokenAnswer.headers.get('cache-control')], [200, 'no-store'])
    const { token_type, scope, refresh_token } = tokenAnswer.body
    assert.deepEqual([token_type, scope, refresh_token], ['Bearer', 'keys:create agent:connect', undefined])
    assert.deepEqual(await errorOf(poll()), [400, 'invalid_grant'])
  })

  test('a device request for scopes that no device may have is refused', async t => {
    const web = await startRunning(engine, t)
    await web.server.services.apps.register({ id: 'tv', name: 'A television', isPublic: true })
    const clientFields = { client_id: 'keyway-cli' }
    const cases: [fields: Record<string, string>, status: number, error: string][] = [
      [{}, 401, 'invalid_client'],
      [{ client_id: 'unknown' }, 401, 'invalid_client'],
      [{ ...clientFields, client_secret: 'x' }, 401, 'invalid_client'],
      [{ client_id: 'tv', scope: 'keys:create' }, 400, 'invalid_scope'],
      [{ client_id: 'tv', scope: 'account:write' }, 400, 'invalid_scope'],
      [{ client_id: 'tv', resource: 'https://shop.example.com' }, 400, 'invalid_target'],
      [{ ...clientFields, scope: 'agent:connect' }, 400, 'invalid_scope'],
      [{ ...clientFields, scope: 'keys:create admin:read' }, 400, 'invalid_scope'],
      [{ ...clientFields, scope: 'keys:create agents:everything' }, 400, 'invalid_scope'],
      [{ ...clientFields, scope: `keys:create ${'x'.repeat(65)}` }, 400, 'invalid_scope'],
      [{ ...clientFields, resource: 'https://shop.example.com' }, 400, 'invalid_target'],
      [{ ...clientFields, device_name: 'x'.repeat(101) }, 400, 'invalid_request'],
      [{ ...clientFields, device_name: 'a\nb' }, 400, 'invalid_request'],
    ]
    for (const [fields, status, error] of cases)
      assert.deepEqual(
        await errorOf(post(web, '/oauth/device', fields)),
        [status, error],
        JSON.stringify(fields),
      )
    assert.equal((await fetch(`${web.url}/oauth/device`)).status, 405)
    assert.deepEqual(
      await errorOf(post(web, '/oauth/token', { ...clientFields, grant_type: DEVICE_GRANT_TYPE })),
      [400, 'invalid_request'],
    )
  })

  test('a client that registered itself connects no device, since nobody has verified its name', async t => {
    const web = await startRunning(engine, t, { KEYWAY_CLIENT_REGISTRATION: 'true' })
    const metadata = {
      client_name: 'Your bank',
      redirect_uris: ['http://127.0.0.1/callback'],
      token_endpoint_auth_method: 'none',
    }
    const registration = await fetch(`${web.url}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(metadata),
    })
    assert.equal(registration.status, 201)
    const { client_id } = await registration.json()
    const deviceRequest = post(web, '/oauth/device', { client_id, scope: 'openid' })
    assert.deepEqual(await errorOf(deviceRequest), [400, 'unauthorized_client'])
  })

  test('a device code is useless to another client, and twenty polls at once redeem it once', async t => {
    const web = await startRunning(engine, t)
    await web.server.services.apps.register({ id: 'tv', name: 'A television', isPublic: true })
    const { body } = await post(web, '/oauth/device', { client_id: 'keyway-cli' })
    await approve(web, body.verification_uri_complete)
    const foreignPoll = { ...pollOf(body.device_code), client_id: 'tv' }
    assert.deepEqual(await errorOf(post(web, '/oauth/token', foreignPoll)), [400, 'invalid_grant'])
    const polls = await Promise.all(
      Array.from({ length: 20 }, () => post(web, '/oauth/token', pollOf(body.device_code))),
    )
    assert.equal(polls.filter(({ status }) => status === 200).length, 1)
    assert.equal(polls.filter(answer => answer.body.error === 'invalid_grant').length, 19)
  })
})

function pollOf(device_code: string): Record<string, string> {
  return { grant_type: DEVICE_GRANT_TYPE, client_id: 'keyway-cli', device_code }
}

async function post({ url }: WebServer, path: string, fields: Record<string, string>) {
  const answer = await fetch(url + path, { method: 'POST', body: new URLSearchParams(fields) })
  return { status: answer.status, headers: answer.headers, body: await answer.json() }
}

async function errorOf(call: ReturnType<typeof post>): Promise<[number, string]> {
  const { status, body } = await call
  return [status, body.error]
}

/** Approves the device's request as the page at its `verification_uri_complete`, which is `address`, does. */
async function approve(web: WebServer, address: string): Promise<void> {
  const { deviceAuthorizations } = web.server.services
  const { searchParams } = new URL(address)
  const authorization = await deviceAuthorizations.findByLink(
    searchParams.get('ticket')!,
    searchParams.get('user_code')!,
  )
  const person = await signedInPage(web)
  assert.equal(await deviceAuthorizations.decide(authorization!.id, 'approved', person, caller()), 'done')
}

async function signedInPage(web: WebServer) {
  const { sessions, storage } = web.server.services
  const { user }: SignedInUser = await newPerson(web, 'ada@example.com')
  const preparedSession = sessions.prepare('console', 'page', caller())
  const session = await storage.transaction(tx => sessions.open(tx, user, preparedSession))
  return { user, session }
}
