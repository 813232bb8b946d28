import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { DAY, MINUTE } from '../../src/clock.ts'
import { INVITATION_LIFETIME } from '../../src/invitations/invitation.ts'
import { createDispatcher } from '../../src/outbox/dispatcher.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'
import { plainMail } from '../support/plain-mail.ts'
import { address, race, refusedWith } from '../support/services.ts'

const GRACE = 'grace@example.com'

async function open(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t)
  const admin = await server.signIn('admin@example.com')
  await server.users.setRole(admin.user.id, 'admin')
  const token = admin.tokens.accessToken
  const call = (method: string, path: string, body?: object, by = token) =>
    server.call(method, `/v1/admin/invitations${path}`, { token: by, body })
  const invite = async (body: object) => (await call('POST', '', body)).body
  const states = async () =>
    (await call('GET', '')).body.data.map((each: { state: string }) => each.state) as string[]
  const lastAuditEvent = async () => (await server.store.audit.list({}, { limit: 1, after: null })).rows[0]!
  await server.policies.change({ signUp: 'invited' }, BY_COMMAND_LINE)
  return { ...server, server, admin, token, call, invite, states, lastAuditEvent }
}

forEachEngine(engine => {
  test('an invited address gets a mail and signs up where nobody else may', async t => {
    const { call, signIn, sendTo, mailsTo, store, states, admin, server, lastAuditEvent } = await open(
      engine,
      t,
    )
    const invitationAnswer = await call('POST', '', { email: GRACE })
    assert.equal(invitationAnswer.status, 201)
    const { id, state, role, invited_by, created_at, expires_at } = invitationAnswer.body
    assert.deepEqual([state, role, invited_by], ['pending', null, admin.user.id])
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), 7 * DAY)
    const auditEvent = await lastAuditEvent()
    assert.deepEqual(
      [auditEvent.type, auditEvent.subject, auditEvent.after],
      ['invitation.created', { type: 'invitation', id, user_id: null }, { role: null }],
    )
    assert.ok(!JSON.stringify(auditEvent).includes(GRACE))
    const [mail] = await mailsTo(GRACE, 'invitation')
    assert.equal(mail!.link, `${server.publicUrl}/sign-in?email=grace%40example.com`)

    const graceSignIn = await signIn(GRACE)
    assert.deepEqual([graceSignIn.isNewUser, graceSignIn.user.role], [true, 'user'])
    assert.deepEqual(await states(), ['accepted'])
    assert.equal((await store.invitations.find(id))!.userId, graceSignIn.user.id)
    const strangersLink = await sendTo('other@example.com')
    const verification = server.magicLinks.verify(
      { token: strangersLink.token, email: address('other@example.com') },
      'api',
      server.caller(),
    )
    assert.equal(await refusedWith(verification), 'forbidden')
    const secondAnswer = await call('POST', '', { email: GRACE })
    assert.deepEqual([secondAnswer.status, secondAnswer.body.errors[0].field], [400, 'email'])
  })

  test('the mail of an invitation is in the requested language, otherwise in the inviter’s', async t => {
    const { call, users, admin, mailsTo } = await open(engine, t)
    const localeOf = async (email: string, body: object = {}) => {
      assert.equal((await call('POST', '', { email, ...body })).status, 201)
      const [mail] = await mailsTo(email, 'invitation')
      return (mail as { locale?: string }).locale
    }
    assert.equal(await localeOf('first@example.com'), undefined)
    assert.equal(await localeOf('second@example.com', { locale: 'fr-ca' }), 'fr-CA')
    await users.setLocale(admin.user.id, 'de')
    assert.equal(await localeOf('third@example.com'), 'de')
    assert.equal(await localeOf('fourth@example.com', { locale: 'ja' }), 'ja')
    const refusal = await call('POST', '', { email: GRACE, locale: 'de_AT' })
    assert.deepEqual([refusal.status, refusal.body.errors[0].field], [400, 'locale'])
  })

  test('the sign-in mail of a pending invitation goes out, and none after it was revoked or expired', async t => {
    const { call, invite, post, store, clock, states, server } = await open(engine, t)
    const stateAfterAsking = async (email: string) => {
      await post('/auth/send-magic-link', { email })
      const dispatcher = createDispatcher({
        ...server,
        mailer: { deliver: async () => {}, check: async () => {}, close() {} },
        write: plainMail,
      })
      await dispatcher.drain()
      return (await store.outbox.recentFor(address(email), 9)).find(({ kind }) => kind === 'sign_in')!.state
    }
    const { id } = await invite({ email: GRACE })
    assert.equal(await stateAfterAsking(GRACE), 'sent')
    const revocation = await call('DELETE', `/${id}`)
    assert.deepEqual([revocation.status, revocation.body.state], [200, 'revoked'])
    assert.equal((await call('DELETE', `/${id}`)).body.revoked_at, revocation.body.revoked_at)
    clock.advance(MINUTE)
    assert.equal(await stateAfterAsking(GRACE), 'failed')
    clock.advance(MINUTE)
    await invite({ email: 'late@example.com' })
    clock.advance(MINUTE)
    await invite({ email: 'late@example.com' })
    assert.deepEqual(await states(), ['pending', 'revoked', 'revoked'], 'a new one replaces the pending one')
    clock.advance(INVITATION_LIFETIME)
    assert.equal(await stateAfterAsking('late@example.com'), 'failed')
  })

  test('an invitation is accepted to its last millisecond, and once of twenty sign-ins on two nodes', async t => {
    const { invite, store, clock, opened, server, sendTo } = await open(engine, t)
    const { id } = await invite({ email: GRACE, role: 'support' })
    const { expiresAt } = (await store.invitations.find(id))!
    assert.equal(expiresAt, clock.now() + INVITATION_LIFETIME)
    const email = address(GRACE)
    assert.ok(await store.invitations.findPending(email, expiresAt - 1))
    assert.equal(await store.invitations.findPending(email, expiresAt), null)
    assert.equal(await server.storage.transaction(tx => tx.invitations.accept(email, id, expiresAt)), null)
    const node = await opened.reopen()
    const otherNode = await openServer(engine, t, { on: { node, of: opened } })
    const links = await Promise.all(Array.from({ length: 20 }, () => sendTo(GRACE)))
    const { won } = await race(20, index =>
      (index % 2 ? server : otherNode).magicLinks.verify(
        { token: links[index]!.token, email },
        'api',
        server.caller(),
      ),
    )
    assert.deepEqual(
      won.map(({ user, isNewUser }) => [user.role, isNewUser]),
      [['support', true]],
    )
    const { rows } = await store.audit.list({ type: 'user.role_changed' }, { limit: 9, after: null })
    assert.deepEqual(rows[0]!.after, { role: 'support', invitation_id: id })
    assert.equal(rows.length, 2, 'of this one and of the administrator')
  })

  test('a role is given by a signed-in administrator only, who must still be one when it is accepted', async t => {
    const { call, createKey, token, invite, signIn, users, admin } = await open(engine, t)
    const { key } = await createKey(token)
    const answerToKey = await call('POST', '', { email: GRACE, role: 'admin' }, key)
    assert.deepEqual([answerToKey.status, answerToKey.body.code], [403, 'session_required'])
    assert.equal((await call('POST', '', { email: 'plain@example.com' }, key)).status, 201)
    for (const body of [
      { email: GRACE, role: 'user' },
      { email: GRACE, role: 'queen' },
      { email: 'grace' },
      { mail: GRACE },
    ])
      assert.equal((await call('POST', '', body)).status, 400, JSON.stringify(body))
    await invite({ email: GRACE, role: 'admin' })
    await invite({ email: 'late@example.com', role: 'admin' })
    assert.equal((await signIn(GRACE)).user.role, 'admin')
    await users.setRole(admin.user.id, 'user')
    const guestOfFormerAdmin = await signIn('late@example.com')
    assert.deepEqual([guestOfFormerAdmin.isNewUser, guestOfFormerAdmin.user.role], [true, 'user'])
  })

  test('an administrator invites 120 addresses a minute, and no more', async t => {
    const { call, clock } = await open(engine, t)
    for (let n = 0; n < 120; n++)
      assert.equal((await call('POST', '', { email: `p${n}@example.com` })).status, 201)
    const { status, body } = await call('POST', '', { email: GRACE })
    assert.deepEqual([status, body.code], [429, 'rate_limited'])
    clock.advance(MINUTE)
    assert.equal((await call('POST', '', { email: GRACE })).status, 201)
  })

  test('deleting an account forgets its invitations', async t => {
    const { invite, signIn, users, states } = await open(engine, t)
    await invite({ email: GRACE })
    const { user } = await signIn(GRACE)
    await users.delete(user.id)
    assert.deepEqual(await states(), [])
  })
})
