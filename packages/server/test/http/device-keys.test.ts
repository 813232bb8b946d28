import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY, MINUTE, SECOND } from '../../src/clock.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'
import { address } from '../support/services.ts'

const ADA = 'ada@example.com'
const APPROVED_SCOPES = ['agent:connect', 'agents:read', 'shop:buy']

type Server = Awaited<ReturnType<typeof openServer>>

forEachEngine((engine: EngineName) => {
  test('an approved device creates one key with the approved scopes, and its owner gets a mail', async t => {
    const server = await openServer(engine, t)
    const { token, scopes, user } = await approvedDevice(server)
    assert.deepEqual(scopes, ['keys:create', ...APPROVED_SCOPES])
    const creationAnswer = await createKey(server, token, { name: 'laptop' })
    assert.equal(creationAnswer.status, 201)
    assert.match(creationAnswer.body.key, /^svc_/)
    assert.deepEqual(
      [
        creationAnswer.body.name,
        creationAnswer.body.user_id,
        creationAnswer.body.scopes,
        creationAnswer.body.unrestricted,
      ],
      ['laptop', user.id, APPROVED_SCOPES, false],
    )
    assert.equal(Date.parse(creationAnswer.body.expires_at), server.clock.now() + 90 * DAY)
    const [mail, ...others] = await server.mailsTo(ADA, 'api_key_created_by_device')
    assert.deepEqual(others, [])
    assert.deepEqual([mail!.keyPrefix, mail!.deviceName], [creationAnswer.body.key_prefix, 'ada’s laptop'])

    const secondKey = await createKey(server, token)
    assert.deepEqual([secondKey.status, secondKey.body.code], [403, 'insufficient_scope'])
  })

  test('the key of a device has the name of the device unless it is given another', async t => {
    const server = await openServer(engine, t)
    const { token } = await approvedDevice(server)
    assert.equal((await createKey(server, token)).body.name, 'ada’s laptop')
  })

  test('twenty creations at once on two nodes with the token of one device make one key', async t => {
    const server = await openServer(engine, t)
    const node = await server.opened.reopen()
    const otherNode = await openServer(engine, t, { on: { node, of: server.opened } })
    await otherNode.signingKeys.load()
    const { token } = await approvedDevice(server)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => createKey(index % 2 ? server : otherNode, token)),
    )
    assert.equal(answers.filter(({ status }) => status === 201).length, 1)
    assert.equal(answers.filter(({ body }) => body.code === 'insufficient_scope').length, 19)
    assert.equal((await server.mailsTo(ADA, 'api_key_created_by_device')).length, 1)
  })

  test('the key of a device has some or all of the approved scopes, never none and never another', async t => {
    const server = await openServer(engine, t)
    const { token } = await approvedDevice(server)
    for (const scopes of [[], ['account:read'], ['agent:connect', 'account:read'], ['keys:create']]) {
      const refusal = await createKey(server, token, { scopes })
      assert.ok([400, 403].includes(refusal.status), refusal.text)
      if (!scopes.includes('keys:create')) assert.equal(refusal.body.code, 'insufficient_scope', refusal.text)
    }
    const creationAnswer = await createKey(server, token, { scopes: ['shop:buy'] })
    assert.deepEqual(creationAnswer.body.scopes, ['shop:buy'])
  })

  test('the key of a device expires within 90 days, to the millisecond', async t => {
    const server = await openServer(engine, t)
    const { token } = await approvedDevice(server)
    const latestExpiry = server.clock.now() + 90 * DAY
    const tooLateAnswer = await createKey(server, token, {
      expires_at: new Date(latestExpiry + 1).toISOString(),
    })
    assert.deepEqual([tooLateAnswer.status, tooLateAnswer.body.errors[0].field], [400, 'expires_at'])
    const creationAnswer = await createKey(server, token, {
      expires_at: new Date(latestExpiry).toISOString(),
    })
    assert.equal(Date.parse(creationAnswer.body.expires_at), latestExpiry)
  })

  test('the access token of a device creates no key after ten minutes', async t => {
    const server = await openServer(engine, t)
    const [early, late] = [await approvedDevice(server), await approvedDevice(server)]
    server.clock.advance(10 * MINUTE - 2 * SECOND)
    assert.equal((await createKey(server, early.token)).status, 201)
    server.clock.advance(2 * SECOND)
    assert.equal((await createKey(server, late.token)).status, 401)
  })

  test('the access token of a device does nothing but create its key', async t => {
    const server = await openServer(engine, t)
    const { token } = await approvedDevice(server)
    for (const path of ['/v1/me', '/v1/api-keys', '/v1/agents', '/v1/sessions', '/v1/security-events']) {
      const refusal = await server.get(path, { token })
      assert.deepEqual([refusal.status, refusal.body.code], [403, 'insufficient_scope'], path)
    }
    const creationAnswer = await createKey(server, token)
    const rotationAnswer = await server.post(`/v1/api-keys/${creationAnswer.body.id}/rotate`, {}, { token })
    assert.equal(rotationAnswer.status, 403)
  })

  test('the access token of a device is refused once its session ended or its owner is suspended', async t => {
    const server = await openServer(engine, t)
    const [one, other] = [await approvedDevice(server), await approvedDevice(server)]
    await server.sessions.end(one.user.id, one.session.id, server.caller())
    assert.equal((await createKey(server, one.token)).status, 401)
    await server.users.suspend(one.user.id)
    assert.equal((await createKey(server, other.token)).status, 401)
  })

  test('no key and no other app may create a key', async t => {
    const server = await openServer(engine, t)
    const { user } = await approvedDevice(server)
    const { app } = await server.apps.register({ id: 'shop', name: 'Shop' })
    const preparedSession = server.sessions.prepareForApp(
      app.id,
      { scopes: ['keys:create', 'agent:connect'], audience: null },
      server.clock.now(),
      server.caller(),
    )
    const session = await server.storage.transaction(tx => server.sessions.open(tx, user, preparedSession))
    const { accessToken } = await server.sessions.appTokens(user, session)
    const refusal = await createKey(server, accessToken)
    assert.deepEqual([refusal.status, refusal.body.code], [403, 'session_required'])
  })
})

function createKey(server: Server, token: string, body: object = {}) {
  return server.post('/v1/api-keys', body, { token })
}

/** A device of keyway-cli that was approved and has polled. */
async function approvedDevice(server: Server) {
  const { token: link } = await server.sendTo(ADA)
  const person = await server.magicLinks.verify({ token: link, email: address(ADA) }, 'page', server.caller())
  const deviceRequest = {
    clientId: 'keyway-cli',
    scopes: ['keys:create', ...APPROVED_SCOPES],
    resource: null,
    deviceName: 'ada’s laptop',
  }
  const codes = await server.deviceAuthorizations.request(deviceRequest, server.caller())
  const authorization = await server.deviceAuthorizations.findByLink(codes.ticket, codes.userCode)
  await server.deviceAuthorizations.decide(authorization!.id, 'approved', person, server.caller())
  const app = await server.apps.find('keyway-cli')
  const pollResult = await server.deviceTokens.poll(app, codes.deviceCode, server.caller())
  if ('refused' in pollResult) throw new Error(pollResult.refused)
  const { accessToken } = await server.sessions.appTokens(pollResult.user, pollResult.session)
  return { ...pollResult, token: accessToken }
}
