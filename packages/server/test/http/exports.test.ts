import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MINUTE } from '../../src/clock.ts'
import { createPersonExports } from '../../src/http/person-export.ts'
import { newId } from '../../src/ids.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'

async function open(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t, { lifetimes: { accessTokenSeconds: 7200 } })
  const admin = await server.signIn('admin@example.com')
  await server.users.setRole(admin.user.id, 'admin')
  const support = await server.signIn('support@example.com')
  await server.users.setRole(support.user.id, 'support')
  const ada = await server.signIn('ada@example.com')
  const exportOwn = (token: string) => server.get('/v1/me/export', { token })
  const exportAda = (token: string) => server.get(`/v1/admin/users/${ada.user.id}/export`, { token })
  return { ...server, server, admin, support, ada, adaToken: ada.tokens.accessToken, exportOwn, exportAda }
}

/** Fields that only operators see. */
const OPERATOR_FIELDS = ['external_id', 'audit_events']

forEachEngine(engine => {
  test('everything about a person is one JSON document, with all pages of every list and no secret', async t => {
    const { server, exportOwn, adaToken, ada, clock, mailsTo } = await open(engine, t)
    const keys = []
    for (let n = 0; n < 3; n++)
      keys.push(await server.createKey(adaToken, { name: `Key ${n}`, metadata: { n } }))
    const now = clock.now()
    for (let n = 0; n < 205; n++)
      await server.storage.transaction(tx =>
        tx.billing.post({
          id: newId(now + n),
          userId: ada.user.id,
          kind: 'credit',
          amount: 1,
          appId: null,
          description: `entry ${n}`,
          cause: `test ${n}`,
          keyId: null,
          lineageId: null,
          createdAt: now + n,
        }),
      )
    const link = await server.sendTo('ada@example.com')
    const { status, headers, body, text } = await exportOwn(adaToken)
    assert.equal(status, 200)
    assert.equal(headers.get('content-disposition'), `attachment; filename="keyway-${ada.user.id}.json"`)
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(body.user.email, 'ada@example.com')
    assert.equal(body.balance.amount, '2.000205')
    assert.equal(body.ledger.length, 206)
    assert.equal(new Set(body.ledger.map(({ id }: { id: string }) => id)).size, 206)
    assert.deepEqual(
      body.api_keys.map(({ metadata }: { metadata: { n: number } }) => metadata.n).toSorted(),
      [0, 1, 2],
    )
    assert.equal(body.sessions.length, 1)
    assert.equal(body.charge_authorizations.length, 2)
    assert.ok(body.security_events.length >= 5)
    assert.deepEqual(body.mails.map(({ template }: { template: string }) => template).toSorted(), [
      'sign_in',
      'sign_in',
      'welcome',
    ])
    const [mail] = await mailsTo('ada@example.com', 'sign_in')
    for (const secret of [...keys.map(({ key }) => key), link.token, link.code, mail!.link])
      assert.ok(!text.includes(secret))
    assert.ok(!text.includes('"last_error":'))
    assert.deepEqual(
      Object.keys(body).filter(name => OPERATOR_FIELDS.includes(name)),
      [],
    )
  })

  test('the operator’s export also has what administrators did, and reading it is recorded and shown to the person', async t => {
    const { server, exportAda, support, ada, adaToken, users, store } = await open(engine, t)
    await users.suspend(ada.user.id)
    await users.activate(ada.user.id)
    const { body } = await exportAda(support.tokens.accessToken)
    assert.deepEqual(
      body.audit_events.map(({ type }: { type: string }) => type),
      ['user.suspended', 'user.activated', 'user.read'],
    )
    assert.equal(body.external_id, null)
    assert.ok('last_error' in body.mails[0])
    const [act] = (await store.audit.list({}, { limit: 1, after: null })).rows
    assert.deepEqual(
      [act!.type, act!.after, act!.actor.id],
      ['user.read', { read: 'export' }, support.user.id],
    )
    const { rows } = await store.securityEvents.list(ada.user.id, { limit: 99, after: null })
    assert.equal(rows.filter(({ type }) => type === 'account_read').length, 1)
    assert.equal((await server.get(`/v1/admin/users/${newId(0)}/export`, { token: adaToken })).status, 401)
  })

  test('a person exports only within 30 minutes of a sign-in, and never by a key', async t => {
    const { server, exportOwn, adaToken, clock } = await open(engine, t)
    const { key } = await server.createKey(adaToken)
    assert.deepEqual(
      [(await exportOwn(key)).status, (await exportOwn(key)).body.code],
      [403, 'session_required'],
    )
    clock.advance(30 * MINUTE - 1)
    assert.equal((await exportOwn(adaToken)).status, 200)
    clock.advance(1)
    assert.equal((await exportOwn(adaToken)).body.code, 'reauthentication_required')
  })

  test('two exports of a person are read at once, and a third is refused until one ends or is given up', async t => {
    const { server, ada, exportOwn, adaToken, clock } = await open(engine, t)
    const beginExport = () => server.personExports.exportOf(ada.user, 'person', async () => {})
    const [first, second] = [beginExport(), beginExport()]
    assert.deepEqual(
      [(await exportOwn(adaToken)).status, (await exportOwn(adaToken)).body.code],
      [429, 'rate_limited'],
    )
    await first.cancel()
    assert.equal((await exportOwn(adaToken)).status, 200)
    assert.equal((await exportOwn(adaToken)).status, 200)
    const thirdExport = beginExport()
    assert.equal((await exportOwn(adaToken)).status, 429)
    clock.advance(MINUTE)
    assert.equal((await exportOwn(adaToken)).status, 200)
    await Promise.all([second.cancel(), thirdExport.cancel()])
    assert.equal((await exportOwn(adaToken)).status, 200)
  })

  test('an export ends when its reader loses the right to read, and holds one page at a time', async t => {
    const { server, admin, ada, users, exportAda } = await open(engine, t)
    for (let n = 0; n < 300; n++)
      await server.storage.transaction(tx =>
        tx.securityEvents.insert({
          id: newId(n),
          userId: ada.user.id,
          type: 'sign_in',
          at: n,
          network: null,
          client: null,
          keyId: null,
          sessionId: null,
        }),
      )
    const { exportOf } = createPersonExports(server, server.clock)
    let checkCount = 0
    const reader = exportOf(ada.user, 'operator', async () => {
      if (++checkCount === 3) throw new Error('no longer an administrator')
    }).getReader()
    let largestChunk = 0
    const readRest = async () => {
      for (;;) {
        const { value, done } = await reader.read()
        if (done) return
        largestChunk = Math.max(largestChunk, value.length)
      }
    }
    await assert.rejects(readRest(), /no longer an administrator/)
    assert.ok(largestChunk < 40_000, `${largestChunk} bytes at once`)
    assert.equal((await exportAda(admin.tokens.accessToken)).body.security_events.length > 300, true)
    await users.setRole(ada.user.id, 'admin')
    await users.setRole(admin.user.id, 'user')
    assert.equal((await exportAda(admin.tokens.accessToken)).body.code, 'forbidden')
  })
})
