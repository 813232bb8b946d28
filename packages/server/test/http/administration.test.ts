import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MAX_BALANCE } from '../../src/billing/money.ts'
import { DAY, MINUTE } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import type { MessageKind } from '../../src/outbox/message.ts'
import { aMessage } from '../contract/fixtures.ts'
import { Client } from '../hub/client.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { basicAuthorization, type CallOptions, openServer } from '../support/http.ts'
import { until } from '../support/patience.ts'
import { address } from '../support/services.ts'

async function open(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t)
  const admin = await server.signIn('admin@example.com')
  await server.users.setRole(admin.user.id, 'admin')
  const ada = await server.signIn('ada@example.com')
  const token = admin.tokens.accessToken
  const call = (method: string, path: string, body?: object, options: CallOptions = {}) =>
    server.call(method, `/v1/admin${path}`, { token, body, ...options })
  const list = async (path: string) => (await call('GET', path)).body
  const lastAuditEvent = async () => (await server.store.audit.list({}, { limit: 1, after: null })).rows[0]!
  return { ...server, admin, ada, token, call, list, lastAuditEvent, server }
}

forEachEngine(engine => {
  test('people are found by the beginning of an address or a domain, by id, and by the prefix of a key', async t => {
    const { list, signIn, server, clock, token } = await open(engine, t)
    const people = ['ann@example.com', 'anna.b@example.com', 'bob@example.org', 'an_x@example.net']
    const signIns = []
    for (const email of people) {
      clock.advance(1)
      signIns.push(await signIn(email))
    }
    const emails = async (path: string) =>
      (await list(path)).data.map((user: { email: string }) => user.email)
    assert.deepEqual((await emails('/users?query=ann')).toSorted(), ['ann@example.com', 'anna.b@example.com'])
    assert.deepEqual(await emails('/users?query=ANN@'), ['ann@example.com'])
    assert.deepEqual(await emails('/users?query=an_'), ['an_x@example.net'], 'no wildcard')
    assert.deepEqual(await emails('/users?query=%25'), [])
    assert.deepEqual(await emails('/users?query=ann%EF%BF%BF'), [], 'what no address contains')
    assert.deepEqual(await emails('/users?query=@example.org'), ['bob@example.org'])
    assert.deepEqual(await emails('/users?query=Example.org'), ['bob@example.org'], 'a domain without its @')
    assert.deepEqual(await emails('/users?query=%20Bob@Example.ORG%20'), ['bob@example.org'])
    const byPart = await emails('/users?query=ob@example')
    assert.deepEqual(await emails('/users?query=ob@example.org'), [], 'a whole address without account')
    assert.deepEqual(byPart, engine === 'postgres' ? ['bob@example.org'] : [], 'with trigrams any part')
    assert.deepEqual(
      (await emails('/users?query=@example.')).toSorted(),
      ['ada@example.com', 'admin@example.com', ...people].toSorted(),
    )
    assert.deepEqual(await emails(`/users?query=${signIns[2]!.user.id}`), ['bob@example.org'])
    const { key } = await server.createKey(signIns[2]!.tokens.accessToken)
    assert.deepEqual(await emails(`/users?query=${key.slice(0, 12)}`), ['bob@example.org'])
    const wholeKeyAnswer = await server.call('GET', `/v1/admin/users?query=${key}`, { token })
    assert.equal(wholeKeyAnswer.status, 400)
    assert.ok(!wholeKeyAnswer.text.includes(key), 'a whole key in a URL is refused and not repeated')
  })

  test('lists of people are paged in every order, and filtered by status and role', async t => {
    const { list, signIn, users, clock } = await open(engine, t)
    for (let n = 0; n < 7; n++) {
      clock.advance(1)
      const { user } = await signIn(`p${n}@example.com`)
      if (n % 3 === 0) await users.suspend(user.id)
      if (n === 4) await users.setRole(user.id, 'support')
    }
    const namesMatching = async (filter: string) => {
      const foundNames: string[] = []
      for (let cursor = ''; ; ) {
        const page = await list(`/users?limit=2${filter}${cursor}`)
        foundNames.push(...page.data.map(({ email }: { email: string }) => email.split('@')[0]))
        if (!page.has_more) return foundNames
        cursor = `&cursor=${page.next_cursor}`
      }
    }
    const newestFirst = ['p6', 'p5', 'p4', 'p3', 'p2', 'p1', 'p0']
    assert.deepEqual((await namesMatching('')).slice(0, 7), newestFirst)
    assert.deepEqual((await namesMatching('&sort=created_at')).slice(-7), newestFirst.toReversed())
    assert.deepEqual(await namesMatching('&status=suspended'), ['p6', 'p3', 'p0'])
    assert.deepEqual(await namesMatching('&role=support'), ['p4'])
    assert.deepEqual(await namesMatching('&role=admin&status=active'), ['admin'])
    assert.deepEqual(await namesMatching('&query=p'), newestFirst.toReversed())
    assert.deepEqual(await namesMatching('&query=p&status=active'), ['p1', 'p2', 'p4', 'p5'])
    assert.deepEqual((await namesMatching('&query=@example')).length, 9)
    assert.deepEqual((await namesMatching('&status=active')).slice(0, 4), ['p5', 'p4', 'p2', 'p1'])
  })

  test('a person is suspended with a reason, activated, renamed and deleted, and each act is recorded', async t => {
    const { call, ada, admin, lastAuditEvent, store, server } = await open(engine, t)
    const path = `/users/${ada.user.id}`
    const { key } = await server.createKey(ada.tokens.accessToken)
    assert.equal((await call('PATCH', path, { status: 'suspended' })).body.errors[0].field, 'reason')
    const suspensionAnswer = await call('PATCH', path, { status: 'suspended', reason: 'spam' })
    assert.deepEqual([suspensionAnswer.status, suspensionAnswer.body.status], [200, 'suspended'])
    const auditEvent = await lastAuditEvent()
    assert.deepEqual(
      [
        auditEvent.type,
        auditEvent.actor.id,
        auditEvent.actor.session_id,
        auditEvent.reason?.text,
        auditEvent.requestId,
      ],
      [
        'user.suspended',
        admin.user.id,
        admin.session.id,
        'spam',
        suspensionAnswer.headers.get('x-request-id'),
      ],
    )
    assert.equal((await server.post('/auth/agent-token', { api_key: key })).body.code, 'account_suspended')
    assert.equal((await call('PATCH', path, { status: 'active' })).body.status, 'active')
    assert.equal((await call('PATCH', path, { name: 'Ada' })).body.name, 'Ada')
    assert.equal((await call('PATCH', path, { nane: 'Ada' })).status, 400)
    assert.equal((await call('GET', path)).body.balance.amount, '2.00')
    assert.equal((await call('DELETE', path)).body.status, 'deleted')
    assert.equal((await call('DELETE', path)).status, 200)
    assert.equal((await call('PATCH', path, { name: 'x' })).status, 404)
    assert.equal((await call('DELETE', `/users/${admin.user.id}`)).body.code, 'last_administrator')
    assert.equal((await call('GET', `/users/${newId(0)}`)).status, 404)
    const { rows } = await store.audit.list({ subject: ada.user.id }, { limit: 100, after: null })
    assert.deepEqual(
      rows.map(({ type }) => type),
      ['user.deleted', 'user.updated', 'user.activated', 'user.suspended'],
    )
  })

  test('several fields of a person are changed together or not at all', async t => {
    const { call, ada, admin, store } = await open(engine, t)
    const auditEvents = async () => (await store.audit.list({}, { limit: 100, after: null })).rows
    const path = `/users/${ada.user.id}`
    const allChanges = { name: 'Ada', role: 'support', status: 'suspended', reason: 'all at once' }
    const changeAnswer = await call('PATCH', path, allChanges)
    assert.deepEqual(
      [changeAnswer.body.name, changeAnswer.body.role, changeAnswer.body.status],
      ['Ada', 'support', 'suspended'],
    )
    const newEvents = (await auditEvents()).filter(({ reason }) => reason?.text === 'all at once')
    assert.deepEqual(newEvents.map(({ type }) => type).toReversed(), [
      'user.role_changed',
      'user.suspended',
      'user.updated',
    ])
    const eventCountBefore = (await auditEvents()).length
    const lastAdministratorChanges = { name: 'Boss', role: 'admin', status: 'suspended', reason: 'away' }
    assert.equal(
      (await call('PATCH', `/users/${admin.user.id}`, lastAdministratorChanges)).body.code,
      'last_administrator',
    )
    assert.equal((await store.users.find(admin.user.id))!.name, null)
    assert.equal((await auditEvents()).length, eventCountBefore, 'nothing was changed')
    assert.equal((await call('PATCH', path, { name: 'Ada', status: 'suspended', reason: 'x' })).status, 200)
    assert.equal((await auditEvents()).length, eventCountBefore, 'and repeating it changes nothing')
  })

  test('credit that would raise a balance above the largest exact amount is refused, with that amount', async t => {
    const { call, ada, server } = await open(engine, t)
    const path = `/users/${ada.user.id}/credits`
    const credit = (amount: string, key: string) =>
      call('POST', path, { amount, description: 'Much' }, { headers: { 'Idempotency-Key': key } })
    await server.storage.transaction(tx =>
      tx.billing.post({
        id: newId(0),
        userId: ada.user.id,
        kind: 'credit',
        amount: MAX_BALANCE - 3_000_000,
        appId: null,
        description: 'Nearly all',
        cause: 'nearly all',
        keyId: null,
        lineageId: null,
        createdAt: 0,
      }),
    )
    const refusal = await credit('1.01', 'a')
    assert.deepEqual([refusal.status, refusal.body.errors[0].field], [400, 'amount'])
    assert.match(refusal.body.detail, /900000000\.00/)
    assert.equal((await credit('1.00', 'b')).body.balance_after, '900000000.00')
  })

  test('credit is added once for each Idempotency-Key, and never another amount', async t => {
    const { call, ada, admin } = await open(engine, t)
    const path = `/users/${ada.user.id}/credits`
    const body = { amount: '5.00', description: 'Refund', reason: 'order 1' }
    const headers = { 'Idempotency-Key': 'refund-1' }
    const firstAnswer = await call('POST', path, body, { headers })
    assert.deepEqual(
      [firstAnswer.status, firstAnswer.body.balance_after, firstAnswer.body.kind],
      [201, '7.00', 'credit'],
    )
    const answers = await Promise.all(Array.from({ length: 20 }, () => call('POST', path, body, { headers })))
    assert.deepEqual(new Set(answers.map(answer => answer.body.id)), new Set([firstAnswer.body.id]))
    for (const [to, other] of [
      [path, { ...body, amount: '6.00' }],
      [`/users/${admin.user.id}/credits`, body],
    ] as const)
      assert.equal((await call('POST', to, other, { headers })).body.code, 'idempotency_conflict')
    assert.equal((await call('POST', path, body)).status, 400)
    for (const field of ['description', 'reason'])
      assert.equal((await call('POST', path, { ...body, [field]: 'a\u001b[2K' }, { headers })).status, 400)
    for (const amount of ['-1', '0', '1e3', '1000000.01', 5])
      assert.equal((await call('POST', path, { ...body, amount }, { headers })).status, 400, String(amount))
    assert.equal((await call('GET', `/users/${ada.user.id}`)).body.balance.amount, '7.00')
  })

  test('what support reads of a person is complete, without secrets, and reading ledger and mails is recorded', async t => {
    const { users, admin, ada, server, store, signIn, sendTo } = await open(engine, t)
    const support = await signIn('support@example.com')
    await users.setRole(support.user.id, 'support')
    const { key } = await server.createKey(ada.tokens.accessToken, { name: 'Laptop' })
    const link = await sendTo('ada@example.com')
    const texts = []
    for (const path of ['', '/api-keys', '/sessions', '/consents', '/ledger', '/security-events', '/mails']) {
      const { status, text } = await server.call('GET', `/v1/admin/users/${ada.user.id}${path}`, {
        token: support.tokens.accessToken,
      })
      assert.equal(status, 200, path)
      texts.push(text)
    }
    const allTexts = texts.join()
    for (const secret of [
      key,
      link.token,
      link.code,
      ada.tokens.refreshToken,
      ada.tokens.accessToken,
      'sealed',
    ])
      assert.ok(!allTexts.includes(secret))
    assert.match(allTexts, /"template":"sign_in"/)
    const mailsAnswer = await server.get('/v1/admin/mails', { token: support.tokens.accessToken })
    assert.match(mailsAnswer.text, /"to":"a\*\*\*@example\.com"/)
    assert.ok(!mailsAnswer.text.includes('ada@'), 'whose mails were read is recorded, and this list is not')
    const { rows } = await store.audit.list({ actor: support.user.id }, { limit: 10, after: null })
    assert.deepEqual(
      rows.map(({ type, after }) => [type, after]),
      [
        ['user.read', { read: 'mails' }],
        ['user.read', { read: 'ledger' }],
      ],
    )
    const path = `/v1/admin/users/${ada.user.id}/ledger`
    const pendingReads = Array.from({ length: 130 }, () =>
      server.get(path, { token: support.tokens.accessToken }),
    )
    const codes = (await Promise.all(pendingReads)).map(({ status }) => status)
    assert.deepEqual(
      [codes.filter(code => code === 200).length, codes.filter(code => code === 429).length],
      [118, 12],
      'so that nobody fills the audit by reading',
    )
    const events = await server.get('/v1/security-events?limit=100', { token: ada.tokens.accessToken })
    const accountReads = events.body.data.filter(({ type }: { type: string }) => type === 'account_read')
    assert.ok(accountReads.length > 50)
    assert.ok(accountReads.every(({ network }: { network: string | null }) => network === null))
    assert.ok(!events.text.includes(support.user.id) && !events.text.includes(admin.user.id))
  })

  test('keys of all people are found by prefix, external id, last use and expiry, and many are revoked at once', async t => {
    const { call, list, server, ada, clock, lastAuditEvent } = await open(engine, t)
    const token = ada.tokens.accessToken
    const startTime = clock.now()
    const timestamp = (ms: number) => new Date(ms).toISOString()
    const keyWithoutExpiry = await server.createKey(token, { external_id: 'customer-1' })
    clock.advance(1)
    const keyWithExpiry = await server.createKey(token, {
      expires_at: timestamp(startTime + DAY),
      external_id: 'customer-1',
    })
    clock.advance(1)
    const usedKey = await server.createKey(token, { expires_at: timestamp(startTime + 30 * DAY) })
    clock.advance(1)
    const revokedKey = await server.createKey(token)
    await call('DELETE', `/api-keys/${revokedKey.id}`)
    const idsMatching = async (filter: string) =>
      (await list(`/api-keys?${filter}`)).data.map(({ id }: { id: string }) => id)
    assert.deepEqual(await idsMatching(''), [
      revokedKey.id,
      usedKey.id,
      keyWithExpiry.id,
      keyWithoutExpiry.id,
    ])
    assert.deepEqual(await idsMatching(`prefix=${keyWithoutExpiry.key.slice(0, 12)}`), [keyWithoutExpiry.id])
    assert.deepEqual(await idsMatching('external_id=customer-1'), [keyWithExpiry.id, keyWithoutExpiry.id])
    assert.deepEqual(await idsMatching('never_expires=true'), [keyWithoutExpiry.id])
    assert.deepEqual(await idsMatching(`expires_before=${timestamp(startTime + 7 * DAY)}`), [
      keyWithExpiry.id,
    ])
    assert.deepEqual(await idsMatching(`expires_before=${timestamp(startTime + 31 * DAY)}`), [
      keyWithExpiry.id,
      usedKey.id,
    ])
    await server.post('/auth/agent-token', { api_key: usedKey.key })
    clock.advance(MINUTE)
    await server.apiKeys.flushUses()
    assert.deepEqual(await idsMatching(`unused_since=${timestamp(startTime + 2)}`), [
      keyWithExpiry.id,
      keyWithoutExpiry.id,
    ])
    assert.deepEqual(await idsMatching(`unused_since=${timestamp(startTime + 2)}&never_expires=true`), [
      keyWithoutExpiry.id,
    ])
    assert.equal((await call('GET', `/api-keys?prefix=${usedKey.key}`)).status, 400)
    const limitAnswer = await call('PATCH', `/api-keys/${usedKey.id}`, {
      operator_limits: { requests: [{ limit: 1, per: 'minute' }] },
    })
    assert.deepEqual(limitAnswer.body.operator_limits, { requests: [{ limit: 1, per: 'minute' }] })
    const key_ids = [keyWithoutExpiry.id, keyWithExpiry.id, newId(0)]
    const answer = await call('POST', '/api-keys/revoke', { key_ids, reason: 'leaked' })
    assert.deepEqual(new Set(answer.body.revoked), new Set([keyWithoutExpiry.id, keyWithExpiry.id]))
    assert.equal((await lastAuditEvent()).reason?.text, 'leaked')
    for (const { key } of [keyWithoutExpiry, keyWithExpiry])
      assert.equal((await server.post('/auth/agent-token', { api_key: key })).body.code, 'api_key_revoked')
    assert.equal(
      (await call('POST', '/api-keys/revoke', { key_ids: Array(101).fill(keyWithExpiry.id) })).status,
      400,
    )
  })

  test('live agents of all people are listed, and one is closed', async t => {
    const { call, list, server, ada, hub, lastAuditEvent } = await open(engine, t)
    const { key } = await server.createKey(ada.tokens.accessToken, { name: 'Robot' })
    const { body } = await server.post('/auth/agent-token', { api_key: key })
    const agent = new Client(`${server.url.replace('http', 'ws')}/hub`, body.token)
    t.after(() => agent.socket.terminate())
    await agent.next('ready')
    const data = await until('the agent is listed', async () => {
      await hub.tick()
      const page = await list('/agents')
      return page.data.length > 0 && page.data
    })
    assert.deepEqual(
      data.map(({ user_id, key_name }: { user_id: string; key_name: string }) => [user_id, key_name]),
      [[ada.user.id, 'Robot']],
    )
    const [node] = (await list('/nodes')).data
    assert.equal(node.connections, 1)
    assert.equal((await call('DELETE', `/agents/${data[0].connection_id}`)).status, 204)
    await agent.end()
    assert.equal((await lastAuditEvent()).type, 'agent.disconnected')
    assert.equal((await call('DELETE', `/agents/${newId(0)}`)).status, 404)
  })

  test('a mail whose link has expired is not sent again, and the answer says how to get a new link', async t => {
    const { call, store, clock } = await open(engine, t)
    const sendAgain = async (kind: MessageKind, sendBefore: number) => {
      const mail = aMessage({ kind, state: 'expired', settledAt: clock.now(), sendBefore })
      await store.outbox.insert(mail)
      const { status, body } = await call('POST', `/mails/${mail.id}/send-again`)
      return body.detail ?? status
    }
    const expiredLinkDetail = 'The link in the mail has expired: the person asks for a new one.'
    assert.equal(
      await sendAgain('invitation', clock.now() - 1),
      'The invitation in the mail has expired: invite the address again.',
    )
    assert.equal(await sendAgain('email_change_new', clock.now() - 1), expiredLinkDetail)
    assert.equal(await sendAgain('email_change_old', clock.now() - 1), expiredLinkDetail)
    assert.match(await sendAgain('sign_in', clock.now() + 1), /the person asks for a new one/)
    assert.equal(await sendAgain('invitation', clock.now()), 200)
  })

  test('mail is listed by state; a failed notice is sent again and a sign-in mail is not', async t => {
    const { call, list, ada, store, clock, suppressions, server } = await open(engine, t)
    const now = clock.now()
    const mails = (await list('/mails?state=queued')).data as { id: string; template: string }[]
    const signIn = mails.find(({ template }) => template === 'sign_in')!
    const welcomeMail = mails.find(({ template }) => template === 'welcome')!
    assert.equal((await call('POST', `/mails/${welcomeMail.id}/send-again`)).body.code, 'mail_not_available')
    const leasedMails = await store.outbox.lease(now, now + MINUTE, 100)
    for (const { id } of leasedMails)
      await store.outbox.settle(id, now + MINUTE, { state: 'failed', at: now, error: 'no' })
    assert.deepEqual((await list('/mails?state=queued')).data, [])
    const resendAnswer = await call('POST', `/mails/${welcomeMail.id}/send-again`)
    assert.deepEqual([resendAnswer.status, resendAnswer.body.state], [200, 'queued'])
    assert.equal((await call('POST', `/mails/${signIn.id}/send-again`)).body.code, 'mail_not_available')
    assert.equal((await call('POST', `/mails/${newId(0)}/send-again`)).status, 404)
    assert.equal((await call('POST', '/mails/test', { email: 'x@example.com' })).body.template, 'test')
    await suppressions.record({ addresses: ['ada@example.com'], reason: 'bounce' }, 'resend')
    assert.equal((await list('/suppressions')).data[0].address, 'ada@example.com')
    assert.equal((await call('DELETE', '/suppressions/ada@example.com')).status, 204)
    assert.equal(await suppressions.find(address('ada@example.com')), null)
    await call('POST', `/users/${ada.user.id}/clear-limits`)
    assert.equal((await call('DELETE', `/users/${ada.user.id}/sessions`)).status, 204)
    assert.equal((await server.get('/v1/me', { token: ada.tokens.accessToken })).status, 401)
  })

  test('apps are registered, changed, given secrets and removed, and the audit has what changed and no address or secret', async t => {
    const { call, list, server, store, token } = await open(engine, t)
    const { key } = await server.createKey(token)
    const body = {
      id: 'shop',
      name: 'The shop',
      redirect_uris: ['https://shop.example.com/callback'],
      scopes: ['keys:read'],
    }
    const registration = await call('POST', '/apps', body)
    assert.deepEqual([registration.status, registration.body.older], [201, { keys: 0, sessions: 0 }])
    assert.match(registration.body.secret, /^sva_/)
    assert.equal((await call('POST', '/apps', body)).status, 400)
    assert.ok((await list('/apps')).data.some(({ id }: { id: string }) => id === 'shop'))
    const path = '/apps/shop'
    const patchByKey = (change: object) =>
      server.call('PATCH', `/v1/admin${path}`, { token: key, body: change })
    assert.equal((await patchByKey({ name: 'Shop' })).body.name, 'Shop')
    for (const change of [{ redirect_uris: [] }, { trusted: true }, { scopes: [] }, { jwks_uri: '' }])
      assert.equal((await patchByKey(change)).body.code, 'session_required', JSON.stringify(change))
    const changeAnswer = await call('PATCH', path, {
      redirect_uris: [],
      trusted: true,
      audience: 'https://shop.example.com',
    })
    assert.deepEqual(
      [changeAnswer.body.redirect_uris, changeAnswer.body.trusted, changeAnswer.body.audience],
      [[], true, 'https://shop.example.com'],
    )
    assert.equal((await call('PATCH', path, { audience: '' })).body.audience, null)
    assert.equal((await call('PATCH', path, { redirect_uris: ['http://evil.example'] })).status, 400)
    assert.equal((await call('PATCH', path, { first_party: true })).status, 400)
    assert.equal((await call('PATCH', path, { scopes: ['admin:read'] })).status, 400)
    server.clock.advance(1)
    const secret = await call('POST', `${path}/secrets`)
    assert.match(secret.body.secret, /^sva_/)
    const introspectionStatus = async (each: string) =>
      (await server.post('/auth/introspect', { token: 'x' }, { headers: basicAuthorization('shop', each) }))
        .status
    assert.deepEqual(
      [await introspectionStatus(registration.body.secret), await introspectionStatus(secret.body.secret)],
      [200, 200],
    )
    const { secrets } = (await call('GET', path)).body
    assert.deepEqual([secrets.length, secrets[0].id], [2, secret.body.id])
    const secondSecretPath = `${path}/secrets/${secrets[1].id}`
    assert.equal((await call('DELETE', `${path}/secrets/${newId(0)}`)).status, 404)
    assert.equal((await call('DELETE', `/apps/hub/secrets/${secrets[1].id}`)).status, 404)
    assert.equal((await call('DELETE', secondSecretPath)).status, 204)
    assert.equal((await call('DELETE', secondSecretPath)).status, 404)
    assert.deepEqual(
      [await introspectionStatus(registration.body.secret), await introspectionStatus(secret.body.secret)],
      [401, 200],
    )
    assert.equal((await call('DELETE', path)).status, 204)
    assert.equal((await call('GET', path)).status, 404)
    assert.equal((await call('DELETE', '/apps/console')).body.code, 'forbidden')
    const { rows } = await store.audit.list({ subject: 'shop' }, { limit: 20, after: null })
    assert.deepEqual(
      rows.map(({ type }) => type),
      [
        'app.removed',
        'app.secret_removed',
        'app.secret_created',
        ...['app.updated', 'app.updated', 'app.updated'],
        'app.registered',
      ],
    )
    const { changed: names } = rows[4]!.after as { changed: string[] }
    assert.deepEqual(names.toSorted(), ['audience', 'redirectUris', 'trusted'])
    const text = JSON.stringify(rows)
    for (const hidden of ['shop.example.com', 'The shop', registration.body.secret, secret.body.secret])
      assert.ok(!text.includes(hidden), hidden)
  })

  test('apps are listed by page, those that registered themselves apart', async t => {
    const { list, call, server, store } = await open(engine, t)
    for (const id of ['bakery', 'shop']) await server.apps.register({ id, name: id })
    const shopApp = (await store.apps.find('shop'))!
    await store.apps.insert({ ...shopApp, id: 'dyn-0123456789' })
    const idsOf = async (filter: string) => {
      const idsMatching: string[] = []
      for (let cursor = ''; ; ) {
        const page = await list(`/apps?limit=1${filter}${cursor}`)
        idsMatching.push(...page.data.map(({ id }: { id: string }) => id))
        if (!page.has_more) return idsMatching
        cursor = `&cursor=${page.next_cursor}`
      }
    }
    const allIds = await idsOf('')
    assert.deepEqual(allIds, allIds.toSorted())
    assert.ok(['bakery', 'console', 'dyn-0123456789', 'hub', 'shop'].every(id => allIds.includes(id)))
    assert.deepEqual(await idsOf('&self_registered=true'), ['dyn-0123456789'])
    assert.deepEqual(
      await idsOf('&self_registered=false'),
      allIds.filter(id => id !== 'dyn-0123456789'),
    )
    for (const invalidQuery of ['?cursor=***', '?self_registered=1', '?limit=0'])
      assert.equal((await call('GET', `/apps${invalidQuery}`)).status, 400, invalidQuery)
  })

  test('the audit is exported whole as JSON lines and CSV, and the stream ends with the right to read it', async t => {
    const { call, ada, store, users, admin, signIn, server, token } = await open(engine, t)
    for (let n = 0; n < 3; n++) {
      await users.suspend(ada.user.id)
      await users.activate(ada.user.id)
    }
    await call('PATCH', `/users/${ada.user.id}`, { status: 'suspended', reason: '@SUM(1;2)' })
    const lines = await call('GET', '/audit-events', undefined, {
      headers: { Accept: 'application/x-ndjson' },
    })
    const rows = lines.text
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
    assert.deepEqual(
      rows.map(({ sequence }) => sequence),
      [1, 2, 3, 4, 5, 6, 7, 8],
    )
    const csvAnswer = await call('GET', `/audit-events?subject=${ada.user.id}`, undefined, {
      headers: { Accept: 'text/csv' },
    })
    assert.match(csvAnswer.headers.get('content-type')!, /^text\/csv/)
    assert.equal(csvAnswer.text.trimEnd().split('\r\n').length, 8)
    assert.ok(csvAnswer.text.includes(`"'@SUM(1;2)"`))
    const { rows: lastStored } = await store.audit.list({}, { limit: 1, after: null })
    assert.equal(rows.at(-1).hash, lastStored[0]!.hash)
    assert.equal((await call('GET', '/audit-events?type=user.nothing')).status, 400)
    const otherAdmin = await signIn('other@example.com')
    await users.setRole(otherAdmin.user.id, 'admin')
    await users.setRole(admin.user.id, 'user')
    const refusal = await server.call('GET', '/v1/admin/audit-events', {
      token,
      headers: { Accept: 'text/csv' },
    })
    assert.equal(refusal.body.code, 'forbidden')
  })
})
