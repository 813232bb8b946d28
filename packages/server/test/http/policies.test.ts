import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { DAY } from '../../src/clock.ts'
import { createDispatcher } from '../../src/outbox/dispatcher.ts'
import type { Mail } from '../../src/outbox/outbox.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'
import { until } from '../support/patience.ts'
import { plainMail } from '../support/plain-mail.ts'
import { address } from '../support/services.ts'

async function open(engine: EngineName, t: TestContext, overrides: Parameters<typeof openServer>[2] = {}) {
  const server = await openServer(engine, t, overrides)
  const admin = await server.signIn('admin@example.com')
  await server.users.setRole(admin.user.id, 'admin')
  const ada = await server.signIn('ada@example.com')
  const token = admin.tokens.accessToken
  const adaToken = ada.tokens.accessToken
  const patch = (body: object) => server.call('PATCH', '/v1/admin/policies', { token, body })
  const setPolicies = async (body: object) =>
    assert.equal((await patch(body)).status, 200, JSON.stringify(body))
  const readPolicies = async () => (await server.call('GET', '/v1/admin/policies', { token })).body
  const createKey = (body: object) => server.call('POST', '/v1/api-keys', { token: adaToken, body })
  return { ...server, admin, ada, token, adaToken, patch, setPolicies, readPolicies, createKey, server }
}

const DEFAULTS = {
  max_key_lifetime_days: null,
  key_expiry_required: false,
  default_key_lifetime_days: 90,
  allowed_scopes: null,
  unrestricted_keys_allowed: true,
  sign_up: 'open',
  sign_up_domains: [],
  trial_credit: '2.00',
  key_limits: { defaults: { requests: [] }, maxima: { requests: [{ limit: 50, per: 'second' }] } },
  person_limits: { requests: [] },
}

/** Asserts that the request for a new key was refused, with a detail that names the policy. */
function assertRefused(answer: { status: number; body: { code: string; detail: string } }, policy: string) {
  assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'], JSON.stringify(answer.body))
  assert.ok(answer.body.detail.includes(policy), answer.body.detail)
}

forEachEngine(engine => {
  test('policies have the defaults and the limits of the settings until they are set, and null returns to them', async t => {
    const { patch, readPolicies, store, admin } = await open(engine, t, {
      keyLimits: [{ limit: 50, per: 'second' }],
    })
    assert.deepEqual(await readPolicies(), DEFAULTS)
    const newPolicies = {
      max_key_lifetime_days: 365,
      key_expiry_required: true,
      default_key_lifetime_days: 30,
      allowed_scopes: ['agent:connect', 'shop:buy'],
      unrestricted_keys_allowed: false,
      sign_up: 'domains',
      sign_up_domains: ['example.com', 'example.org'],
      trial_credit: '0.50',
      key_limits: {
        defaults: { requests: [{ limit: 10, per: 'minute' }] },
        maxima: { requests: [{ limit: 1000, per: 'minute' }] },
      },
      person_limits: { requests: [{ limit: 5000, per: 'day' }] },
    }
    const changeAnswer = await patch({
      ...newPolicies,
      sign_up_domains: ['EXAMPLE.com', 'example.org', 'example.com'],
    })
    assert.deepEqual(changeAnswer.body, newPolicies)
    assert.deepEqual(await readPolicies(), newPolicies)
    const [auditEvent] = (await store.audit.list({}, { limit: 1, after: null })).rows
    assert.deepEqual([auditEvent!.type, auditEvent!.actor.id], ['policies.changed', admin.user.id])
    assert.deepEqual(
      [auditEvent!.before!.trial_credit, auditEvent!.after!.trial_credit, auditEvent!.after!.person_limits],
      ['2.00', '0.50', ['5000/day']],
    )
    await patch({ key_limits: null, reason: 'settings again' })
    assert.deepEqual((await readPolicies()).key_limits, DEFAULTS.key_limits)
    const allUnset = Object.fromEntries(Object.keys(DEFAULTS).map(name => [name, null]))
    assert.deepEqual((await patch(allUnset)).body, DEFAULTS)
    const auditEventCountBefore = (await store.audit.list({}, { limit: 100, after: null })).rows.length
    assert.equal((await patch({})).status, 200)
    assert.equal((await store.audit.list({}, { limit: 100, after: null })).rows.length, auditEventCountBefore)
  })

  test('a policy that is mistyped, out of range or contradicts another is refused and changes nothing', async t => {
    const { patch, readPolicies } = await open(engine, t, { keyLimits: [{ limit: 50, per: 'second' }] })
    const invalidBodies = [
      { sign_upp: 'open' },
      { sign_up: 'everybody' },
      { sign_up: 'domains' },
      { sign_up_domains: ['ada@example.com'] },
      { sign_up_domains: ['*.example.com'] },
      { sign_up_domains: 'example.com' },
      { max_key_lifetime_days: 0 },
      { max_key_lifetime_days: 36_501 },
      { max_key_lifetime_days: '30' },
      { allowed_scopes: [] },
      { allowed_scopes: ['agent:fly'] },
      { trial_credit: '-1' },
      { trial_credit: 2 },
      { trial_credit: '1000000.01' },
      { key_expiry_required: 'yes' },
      { key_limits: { maxima: { requests: [{ limit: 0, per: 'day' }] } } },
      { key_limits: { maxima: { spend: [{ amount: '1.00', per: 'day' }] } } },
      { key_limits: { defaults: { requests: [{ limit: 51, per: 'second' }] } } },
      { person_limits: [] },
    ]
    for (const body of invalidBodies) {
      const answer = await patch(body)
      assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'], JSON.stringify(body))
    }
    assert.match((await patch({ sign_upp: 'open' })).body.detail, /sign_up/)
    assert.deepEqual(await readPolicies(), DEFAULTS)
  })

  test('policies apply to every new key by the API, a rotation and a device, and older keys stay and are listed', async t => {
    const { setPolicies, createKey, call, adaToken, token, clock, post, server } = await open(engine, t)
    const oldKey = (await createKey({})).body
    clock.advance(1)
    const olderKey = (await createKey({ scopes: ['account:read'] })).body
    const compliantKey = (
      await createKey({ scopes: ['agent:connect'], expires_at: toTimestamp(clock.now() + 30 * DAY) })
    ).body
    await setPolicies({ max_key_lifetime_days: 30, allowed_scopes: ['agent:connect'] })
    await setPolicies({ unrestricted_keys_allowed: false })
    const allowedExpiry = toTimestamp(clock.now() + 30 * DAY)
    assertRefused(await createKey({ scopes: ['agent:connect'] }), 'max_key_lifetime_days')
    const keyBeyondLimit = { scopes: ['agent:connect'], expires_at: toTimestamp(clock.now() + 30 * DAY + 1) }
    assertRefused(await createKey(keyBeyondLimit), 'max_key_lifetime_days')
    assertRefused(await createKey({ expires_at: allowedExpiry }), 'unrestricted_keys_allowed')
    assertRefused(await createKey({ scopes: ['account:read'], expires_at: allowedExpiry }), 'allowed_scopes')
    assert.equal((await createKey({ scopes: ['agent:connect'], expires_at: allowedExpiry })).status, 201)

    const rotate = (id: string) => call('POST', `/v1/api-keys/${id}/rotate`, { token: adaToken, body: {} })
    assertRefused(await rotate(oldKey.id), 'max_key_lifetime_days')
    assert.equal((await rotate(compliantKey.id)).status, 201)
    assert.equal((await post('/auth/agent-token', { api_key: oldKey.key })).status, 200, 'older keys stay')

    const deviceToken = await approvedDevice(server, ['agent:connect', 'agents:read'])
    const createKeyOfDevice = (body: object) => call('POST', '/v1/api-keys', { token: deviceToken, body })
    assertRefused(await createKeyOfDevice({}), 'allowed_scopes')
    const creationAnswer = await createKeyOfDevice({ scopes: ['agent:connect'] })
    assert.equal(creationAnswer.status, 201, creationAnswer.text)
    assert.equal(
      Date.parse(creationAnswer.body.expires_at),
      clock.now() + 30 * DAY,
      'the longest that is allowed',
    )

    await setPolicies({ max_key_lifetime_days: null, key_expiry_required: true })
    assertRefused(await createKey({ scopes: ['agent:connect'] }), 'key_expiry_required')
    const violatingKeys = await call('GET', '/v1/admin/api-keys?violates_policy=true', { token })
    assert.deepEqual(
      violatingKeys.body.data.map(({ id }: { id: string }) => id),
      [olderKey.id, oldKey.id],
    )
    assert.equal((await call('DELETE', `/v1/admin/api-keys/${oldKey.id}`, { token })).status, 200)
    const remainingViolatingKeys = await call('GET', '/v1/admin/api-keys?violates_policy=true', { token })
    assert.equal(remainingViolatingKeys.body.data.length, 1)
  })

  test('a policy applies on every node once its change was answered, and limits within moments', async t => {
    const { setPolicies, opened, adaToken, createKey, post } = await open(engine, t)
    const node = await opened.reopen()
    const otherNode = await openServer(engine, t, { on: { node, of: opened } })
    await otherNode.policies.load()
    otherNode.policies.start()
    t.after(() => otherNode.policies.stop())
    const { key } = (await createKey({})).body
    for (let round = 0; round < 5; round++) {
      await setPolicies({ unrestricted_keys_allowed: false })
      const refusal = await otherNode.call('POST', '/v1/api-keys', { token: adaToken, body: {} })
      assertRefused(refusal, 'unrestricted_keys_allowed')
      await setPolicies({ unrestricted_keys_allowed: true })
      assert.equal((await otherNode.call('POST', '/v1/api-keys', { token: adaToken, body: {} })).status, 201)
    }
    await setPolicies({ person_limits: { requests: [{ limit: 1, per: 'day' }] } })
    if (engine === 'sqlite') await otherNode.policies.load() // nodes on SQLite exchange no events
    await until('the other node has the limit', () => otherNode.policies.current().personLimits.length === 1)
    assert.equal((await post('/auth/agent-token', { api_key: key })).status, 200)
    assert.equal((await otherNode.post('/auth/agent-token', { api_key: key })).body.code, 'rate_limited')
  })

  test('new accounts get the trial credit of the policy, or none', async t => {
    const { setPolicies, signIn, store, mailsTo } = await open(engine, t)
    await setPolicies({ trial_credit: '0.25' })
    const bob = await signIn('bob@example.com')
    assert.equal(await store.billing.balance(bob.user.id), 250_000)
    assert.equal((await mailsTo('bob@example.com', 'welcome'))[0]!.trialCredit, '0.25')
    await setPolicies({ trial_credit: '0' })
    const cat = await signIn('cat@example.com')
    assert.equal(await store.billing.balance(cat.user.id), 0)
    assert.equal((await store.billing.ledger(cat.user.id, { limit: 9, after: null })).rows.length, 0)
  })

  test('where sign-up is not open a stranger is answered like everybody, gets no mail, and cannot sign up by link or code', async t => {
    const { setPolicies, post, server, store, sendTo } = await open(engine, t)
    const { drain, sent } = createTestDispatcher(server)
    const earlyLink = await sendTo('early@example.com')
    await drain()
    await setPolicies({ sign_up: 'domains', sign_up_domains: ['example.org'] })
    const requestLink = (email: string) => post('/auth/send-magic-link', { email })
    const [known, stranger] = [
      await requestLink('ada@example.com'),
      await requestLink('stranger@example.com'),
    ]
    assert.deepEqual(Object.keys(stranger.body), Object.keys(known.body))
    assert.deepEqual([stranger.status, stranger.body.status, stranger.body.expires_in], [200, 'sent', 300])
    assert.deepEqual([...stranger.headers.keys()], [...known.headers.keys()])
    for (const email of ['someone@example.org', 'someone@sub.example.org']) await requestLink(email)
    sent.length = 0
    await drain()
    assert.deepEqual(sent.map(({ to }) => to).toSorted(), ['ada@example.com', 'someone@example.org'])
    const [mail] = await store.outbox.recentFor(address('stranger@example.com'), 1)
    assert.deepEqual([mail!.state, mail!.sealedContent], ['failed', null])
    assert.match(mail!.lastError!, /sign-up is not open/)

    // The mail with this link and code was delivered before sign-up was closed to its address.
    for (const proof of [{ token: earlyLink.token }, { login_id: earlyLink.loginId, code: earlyLink.code }]) {
      const refusal = await post('/auth/verify-magic-link', { ...proof, email: 'early@example.com' })
      assert.deepEqual([refusal.status, refusal.body.code], [403, 'forbidden'], refusal.text)
      assert.match(refusal.body.detail, /sign-up is not open to it\. Ask the operator for an invitation\.$/)
    }
    const guess = { login_id: stranger.body.login_id, code: '00000000', email: 'stranger@example.com' }
    assert.equal((await post('/auth/verify-magic-link', guess)).body.code, 'magic_link_invalid')
    assert.equal(await store.users.findByEmail(address('early@example.com')), null)
    await setPolicies({ sign_up: 'open' })
    const acceptedAnswer = await post('/auth/verify-magic-link', {
      token: earlyLink.token,
      email: 'early@example.com',
    })
    assert.equal(acceptedAnswer.status, 200, 'nothing was used up')
  })

  test('an address of KEYWAY_ADMIN_EMAILS may always sign up', async t => {
    const { setPolicies, signIn, listed } = await open(engine, t, { adminEmails: ['boss@example.com'] })
    await listed.apply()
    await setPolicies({ sign_up: 'invited' })
    const boss = await signIn('boss@example.com')
    assert.deepEqual([boss.isNewUser, boss.user.role], [true, 'admin'])
  })
})

function toTimestamp(at: number): string {
  return new Date(at).toISOString()
}

function createTestDispatcher(server: Awaited<ReturnType<typeof openServer>>) {
  const sentMails: Mail[] = []
  const dispatcher = createDispatcher({
    ...server,
    mailer: { deliver: async mail => void sentMails.push(mail), check: async () => {}, close() {} },
    write: plainMail,
  })
  return { sent: sentMails, drain: () => dispatcher.drain() }
}

/** The access token of a device of Ada that may create a key with these scopes. */
async function approvedDevice(server: Awaited<ReturnType<typeof openServer>>, scopes: string[]) {
  const email = address('ada@example.com')
  const { token: link } = await server.sendTo(email)
  const person = await server.magicLinks.verify({ token: link, email }, 'page', server.caller())
  const deviceRequest = {
    clientId: 'keyway-cli',
    scopes: ['keys:create', ...scopes],
    resource: null,
    deviceName: null,
  }
  const codes = await server.deviceAuthorizations.request(deviceRequest, server.caller())
  const foundAuthorization = await server.deviceAuthorizations.findByLink(codes.ticket, codes.userCode)
  await server.deviceAuthorizations.decide(foundAuthorization!.id, 'approved', person, server.caller())
  const app = await server.apps.find('keyway-cli')
  const pollResult = await server.deviceTokens.poll(app, codes.deviceCode, server.caller())
  if ('refused' in pollResult) throw new Error(pollResult.refused)
  return (await server.sessions.appTokens(pollResult.user, pollResult.session)).accessToken
}
