import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY, MINUTE, SECOND } from '../../src/clock.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'
import { address } from '../support/services.ts'

const ADA = 'ada@example.com'
const APPROVED = ['agent:connect', 'agents:read', 'shop:buy']

type Server = Awaited<ReturnType<typeof openServer>>

forEachEngine((engine: EngineName) => {
  test('an approved device creates one key with the approved scopes, and its owner gets a mail', async t => {
    const server = await openServer(engine, t)
    const { token, scopes, user } = await approvedDevice(server)
    assert.deepEqual(scopes, ['keys:create', ...APPROVED])
    const made = await create(server, token, { name: 'laptop' })
    assert.equal(made.status, 201)
    assert.match(made.body.key, /^svc_/)
    assert.deepEqual(
      [made.body.name, made.body.user_id, made.body.scopes, made.body.unrestricted],
      ['laptop', user.id, APPROVED, false],
    )
    assert.equal(Date.parse(made.body.expires_at), server.clock.now() + 90 * DAY)
    const [mail, ...others] = await server.mailsTo(ADA, 'api_key_created_by_device')
    assert.deepEqual(others, [])
    assert.deepEqual([mail!.keyPrefix, mail!.deviceName], [made.body.key_prefix, 'ada’s laptop'])

    const again = await create(server, token)
    assert.deepEqual([again.status, again.body.code], [403, 'insufficient_scope'])
  })

  test('the key of a device has the name of the device unless it is given another', async t => {
    const server = await openServer(engine, t)
    const { token } = await approvedDevice(server)
    assert.equal((await create(server, token)).body.name, 'ada’s laptop')
  })

  test('twenty creations at once on two nodes with the token of one device make one key', async t => {
    const server = await openServer(engine, t)
    const node = await server.opened.reopen()
    const other = await openServer(engine, t, { on: { node, of: server.opened } })
    await other.signingKeys.load()
    const { token } = await approvedDevice(server)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => create(index % 2 ? server : other, token)),
    )
    assert.equal(answers.filter(({ status }) => status === 201).length, 1)
    assert.equal(answers.filter(({ body }) => body.code === 'insufficient_scope').length, 19)
    assert.equal((await server.mailsTo(ADA, 'api_key_created_by_device')).length, 1)
  })

  test('the key of a device has some or all of the approved scopes, never none and never another', async t => {
    const server = await openServer(engine, t)
    const { token } = await approvedDevice(server)
    for (const scopes of [[], ['account:read'], ['agent:connect', 'account:read'], ['keys:create']]) {
      const refused = await create(server, token, { scopes })
      assert.ok([400, 403].includes(refused.status), refused.text)
      if (!scopes.includes('keys:create')) assert.equal(refused.body.code, 'insufficient_scope', refused.text)
    }
    const made = await create(server, token, { scopes: ['shop:buy'] })
    assert.deepEqual(made.body.scopes, ['shop:buy'])
  })

  test('the key of a device expires within 90 days, to the millisecond', async t => {
    const server = await openServer(engine, t)
    const { token } = await approvedDevice(server)
    const last = server.clock.now() + 90 * DAY
    const late = await create(server, token, { expires_at: new Date(last + 1).toISOString() })
    assert.deepEqual([late.status, late.body.errors[0].field], [400, 'expires_at'])
    const made = await create(server, token, { expires_at: new Date(last).toISOString() })
    assert.equal(Date.parse(made.body.expires_at), last)
  })

  test('the access token of a device creates no key after ten minutes', async t => {
    const server = await openServer(engine, t)
    const [early, late] = [await approvedDevice(server), await approvedDevice(server)]
    server.clock.advance(10 * MINUTE - 2 * SECOND)
    assert.equal((await create(server, early.token)).status, 201)
    server.clock.advance(2 * SECOND)
    assert.equal((await create(server, late.token)).status, 401)
  })

  test('the access token of a device does nothing but create its key', async t => {
    const server = await openServer(engine, t)
    const { token } = await approvedDevice(server)
    for (const path of ['/v1/me', '/v1/api-keys', '/v1/agents', '/v1/sessions', '/v1/security-events']) {
      const refused = await server.get(path, { token })
      assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_scope'], path)
    }
    const made = await create(server, token)
    const rotated = await server.post(`/v1/api-keys/${made.body.id}/rotate`, {}, { token })
    assert.equal(rotated.status, 403)
  })

  test('the access token of a device is refused once its session ended or its owner is suspended', async t => {
    const server = await openServer(engine, t)
    const [one, other] = [await approvedDevice(server), await approvedDevice(server)]
    await server.sessions.end(one.user.id, one.session.id, server.caller())
    assert.equal((await create(server, one.token)).status, 401)
    await server.users.suspend(one.user.id)
    assert.equal((await create(server, other.token)).status, 401)
  })

  test('no key and no other app may create a key', async t => {
    const server = await openServer(engine, t)
    const { user } = await approvedDevice(server)
    const { app } = await server.apps.register({ id: 'shop', name: 'Shop' })
    const prepared = server.sessions.prepareForApp(
      app.id,
      { scopes: ['keys:create', 'agent:connect'], audience: null },
      server.clock.now(),
      server.caller(),
    )
    const session = await server.storage.transaction(tx => server.sessions.open(tx, user, prepared))
    const { accessToken } = await server.sessions.appTokens(user, session)
    const refused = await create(server, accessToken)
    assert.deepEqual([refused.status, refused.body.code], [403, 'session_required'])
  })
})

function create(server: Server, token: string, body: object = {}) {
  return server.post('/v1/api-keys', body, { token })
}

/** A device of keyway-cli that was approved and has polled. */
async function approvedDevice(server: Server) {
  const { token: link } = await server.sendTo(ADA)
  const person = await server.magicLinks.verify({ token: link, email: address(ADA) }, 'page', server.caller())
  const wanted = {
    clientId: 'keyway-cli',
    scopes: ['keys:create', ...APPROVED],
    resource: null,
    deviceName: 'ada’s laptop',
  }
  const codes = await server.deviceAuthorizations.request(wanted, server.caller())
  const found = await server.deviceAuthorizations.ofLink(codes.ticket, codes.userCode)
  await server.deviceAuthorizations.decide(found!.id, 'approved', person, server.caller())
  const app = await server.apps.find('keyway-cli')
  const granted = await server.deviceTokens.poll(app, codes.deviceCode, server.caller())
  if ('refused' in granted) throw new Error(granted.refused)
  const { accessToken } = await server.sessions.appTokens(granted.user, granted.session)
  return { ...granted, token: accessToken }
}
