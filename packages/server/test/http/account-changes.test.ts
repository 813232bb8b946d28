import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { DELETION_WAIT } from '../../src/account-changes/deletions.ts'
import { toRfc3339 } from '../../src/clock.ts'
import { REAUTHENTICATION_WINDOW } from '../../src/sessions/reauthentication.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'

async function open(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t, { lifetimes: { accessTokenSeconds: 7200 } })
  const ada = await server.signIn('ada@example.com')
  const token = ada.tokens.accessToken
  const linkTo = async (email: string, kind: 'email_change_old' | 'email_change_new') => {
    const [mail] = await server.mailsTo(email, kind)
    return new URL(mail!.link)
  }
  return { server, ada, token, linkTo }
}

/** A response without the headers that differ each time, to be compared with another. */
function withoutVaryingHeaders({
  status,
  body,
  headers,
}: Awaited<ReturnType<Awaited<ReturnType<typeof openServer>>['get']>>) {
  const names = [...headers.keys()].filter(name => !['date', 'x-request-id'].includes(name))
  return { status, body, headers: names.map(name => [name, headers.get(name)]) }
}

forEachEngine(engine => {
  test('the API changes an address by the links that both addresses got', async t => {
    const { server, token, linkTo } = await open(engine, t)
    const requestAnswer = await server.post('/v1/me/email', { email: ' Ada@Example.ORG ' }, { token })
    assert.deepEqual([requestAnswer.status, requestAnswer.body], [200, { status: 'sent', expires_in: 3600 }])
    const pendingChange = (await server.get('/v1/me', { token })).body.email_change
    assert.equal(pendingChange.email, 'ada@example.org')
    assert.deepEqual(pendingChange.awaits, ['old', 'new'])

    const confirm = async (link: URL) =>
      server.post('/v1/me/email/confirm', { token: link.searchParams.get('token') }, { token })
    const firstConfirmation = await confirm(await linkTo('ada@example.org', 'email_change_new'))
    assert.deepEqual(
      [firstConfirmation.body.user.email, firstConfirmation.body.email_change.awaits],
      ['ada@example.com', ['old']],
    )
    const secondConfirmation = await confirm(await linkTo('ada@example.com', 'email_change_old'))
    assert.deepEqual(
      [secondConfirmation.body.user.email, secondConfirmation.body.email_change],
      ['ada@example.org', null],
    )

    await server.post('/v1/me/email', { email: 'third@example.org' }, { token })
    assert.equal((await server.call('DELETE', '/v1/me/email', { token })).status, 204)
    assert.equal((await server.call('DELETE', '/v1/me/email', { token })).status, 204)
    assert.equal((await server.get('/v1/me', { token })).body.email_change, null)
  })

  test('asking for an address is answered alike whether or not it has an account', async t => {
    const { server, token } = await open(engine, t)
    await server.signIn('bob@example.com')
    const answers = []
    for (const email of ['bob@example.com', 'nobody@example.com'])
      answers.push(withoutVaryingHeaders(await server.post('/v1/me/email', { email }, { token })))
    assert.deepEqual(answers[0], answers[1])
    const emailChange = (await server.get('/v1/me', { token })).body.email_change
    assert.deepEqual(emailChange.awaits, ['old', 'new'])
  })

  test('a stolen session neither changes the address nor deletes the account without a recent sign-in', async t => {
    const { server, token } = await open(engine, t)
    const calls = () => [
      server.post('/v1/me/email', { email: 'eve@example.org' }, { token }),
      server.call('DELETE', '/v1/me', { token }),
      server.post('/v1/me/restore', {}, { token }),
    ]
    server.clock.advance(REAUTHENTICATION_WINDOW - 1)
    for (const { status } of await Promise.all(calls())) assert.equal(status, 200)
    await server.post('/v1/me/restore', {}, { token })
    server.clock.advance(1)
    for (const { status, body } of await Promise.all(calls()))
      assert.deepEqual([status, body.code], [403, 'reauthentication_required'])
    assert.equal((await server.get('/v1/me', { token })).body.deletes_at, null)
    assert.deepEqual(
      await server.mailsTo('eve@example.org', 'email_change_new').then(mails => mails.length),
      1,
    )
  })

  test('an invalid address, the account’s own one and an invalid token are refused with the name of their field', async t => {
    const { server, token } = await open(engine, t)
    const invalidRequests: [string, object, string][] = [
      ['/v1/me/email', {}, 'email'],
      ['/v1/me/email', { email: 'a@b@c.example' }, 'email'],
      ['/v1/me/email', { email: 'ADA@example.com' }, 'email'],
      ['/v1/me/email', { email: 5 }, 'email'],
      ['/v1/me/email/confirm', {}, 'token'],
      ['/v1/me/email/confirm', { token: 'x'.repeat(43) }, 'token'],
      ['/v1/me/email/confirm', { token: 'x'.repeat(201) }, 'token'],
    ]
    for (const [path, body, field] of invalidRequests) {
      const answer = await server.post(path, body, { token })
      assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'], JSON.stringify(body))
      assert.equal(answer.body.errors[0].field, field)
    }
  })

  test('the API asks for the deletion of the account, shows its time, and cancels it', async t => {
    const { server, token, ada } = await open(engine, t)
    const deletesAt = toRfc3339(server.clock.now() + DELETION_WAIT)
    const requestAnswer = await server.call('DELETE', '/v1/me', { token })
    assert.deepEqual([requestAnswer.status, requestAnswer.body.deletes_at], [200, deletesAt])
    server.clock.advance(1000)
    assert.equal((await server.call('DELETE', '/v1/me', { token })).body.deletes_at, deletesAt)
    assert.equal((await server.get('/v1/me', { token })).body.user.status, 'active')
    const exportedData = (await server.get('/v1/me/export', { token })).body
    assert.equal(exportedData.deletes_at, deletesAt)
    const admin = await server.signIn('admin@example.com')
    await server.users.setRole(admin.user.id, 'admin')
    const adminView = await server.get(`/v1/admin/users/${ada.user.id}`, {
      token: admin.tokens.accessToken,
    })
    assert.equal(adminView.body.deletes_at, deletesAt)
    const restoration = await server.post('/v1/me/restore', {}, { token })
    assert.deepEqual([restoration.status, restoration.body.deletes_at], [200, null])

    await server.call('DELETE', '/v1/me', { token })
    server.clock.advance(DELETION_WAIT)
    await server.deletions.deleteDue()
    assert.equal((await server.get('/v1/me', { token })).status, 401)
    assert.equal((await server.users.get(ada.user.id))!.email, null)
  })

  test('the last administrator is refused deletion', async t => {
    const { server, token, ada } = await open(engine, t)
    await server.users.setRole(ada.user.id, 'admin')
    const { status, body } = await server.call('DELETE', '/v1/me', { token })
    assert.deepEqual([status, body.code], [409, 'last_administrator'])
  })
})
