import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/ids.ts'
import { accessTokenOf, signAccessToken } from '../../src/sessions/access-token.ts'
import { pageCookie, refreshToken } from '../../src/sessions/refresh-token.ts'
import { audited } from '../contract/fixtures.ts'
import { forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, refusedWith, type Services } from '../support/services.ts'

const page = { limit: 50, after: null }
const MINUTE = 60_000

function decode(token: string): { header: Record<string, unknown>; claims: Record<string, unknown> } {
  const [header, claims] = token
    .split('.')
    .slice(0, 2)
    .map(part => JSON.parse(Buffer.from(part, 'base64url').toString()))
  return { header, claims }
}

async function signInOnPage({ sendTo, magicLinks }: Services, email: string) {
  const { token } = await sendTo(email)
  return magicLinks.verify({ token, email: address(email) }, 'page', caller())
}

/** The credential with the last bit of its MAC flipped. */
function forgedFrom(credential: string): string {
  const bytes = Buffer.from(credential.slice(4), 'base64url')
  bytes[bytes.length - 1]! ^= 1
  return credential.slice(0, 4) + bytes.toString('base64url')
}

async function eventTypes({ store }: Services, userId: string): Promise<string[]> {
  return (await store.securityEvents.list(userId, page)).rows.map(({ type }) => type)
}

forEachEngine(engine => {
  test('an access token contains exactly the promised claims', async t => {
    const services = await openServices(engine, t)
    const { tokens, user, session } = await services.signIn('a@example.com')
    const { header, claims } = decode(tokens.accessToken)
    const now = Math.floor(services.clock.now() / 1000)
    assert.equal(header.typ, 'at+jwt')
    assert.equal(header.alg, 'EdDSA')
    const { jti, ...rest } = claims
    assert.equal(typeof jti, 'string')
    assert.deepEqual(rest, {
      type: 'access',
      iss: services.publicUrl,
      aud: services.publicUrl,
      sub: user.id,
      client_id: 'console',
      sid: session.id,
      role: 'user',
      iat: now,
      exp: now + 900,
    })
    assert.equal(tokens.expiresIn, 900)
    assert.equal(tokens.refreshExpiresIn, 2_592_000)
    assert.match(tokens.refreshToken, /^svr_[A-Za-z0-9_-]+$/)
  })

  test('an access token is valid until its last millisecond, while its session is live', async t => {
    const services = await openServices(engine, t)
    const { tokens, user } = await services.signIn('a@example.com')
    services.clock.advance(899_999)
    assert.equal((await services.sessions.authenticate(tokens.accessToken)).user.id, user.id)
    services.clock.advance(1)
    assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'invalid_token')
  })

  test('an access token never outlives its session', async t => {
    const services = await openServices(engine, t, { lifetimes: { sessionSeconds: 600 } })
    const { tokens } = await services.signIn('a@example.com')
    assert.equal(tokens.expiresIn, 600)
    assert.equal(tokens.refreshExpiresIn, 600)
    services.clock.advance(500_000)
    const refreshResult = await services.sessions.refresh(tokens.refreshToken, null, caller())
    assert.equal(refreshResult.tokens.expiresIn, 100)
    assert.equal(refreshResult.tokens.refreshExpiresIn, 100)
  })

  test('anything but an access token of this service is refused', async t => {
    const services = await openServices(engine, t)
    const { tokens, user, session } = await services.signIn('a@example.com')
    const now = Math.floor(services.clock.now() / 1000)
    const claims = { ...decode(tokens.accessToken).claims, iat: now, exp: now + 900 }
    const sign = services.jwt.sign
    const refusedTokens = [
      '',
      'x',
      tokens.refreshToken,
      tokens.accessToken.slice(0, -1),
      `${tokens.accessToken}.`,
      sign('agent_ws', claims),
      sign('at+jwt', { ...claims, type: 'agent_ws' }),
      sign('at+jwt', { ...claims, aud: `${services.publicUrl}/hub` }),
      sign('at+jwt', { ...claims, iss: 'https://evil.test' }),
      sign('at+jwt', { ...claims, sid: 'no-uuid' }),
      sign('at+jwt', { ...claims, sid: user.id }),
      sign('at+jwt', { ...claims, sub: session.id }),
      sign('at+jwt', { ...claims, sid: undefined }),
    ]
    for (const token of refusedTokens) {
      assert.equal(await refusedWith(services.sessions.authenticate(token)), 'invalid_token', token)
    }
    assert.equal(await refusedWith(services.sessions.authenticate(sign('at+jwt', claims))), 'none')
  })

  test('logging out ends the session at once, and publishes an event', async t => {
    const services = await openServices(engine, t)
    const { tokens, user, session } = await services.signIn('a@example.com')
    const otherSession = await services.signIn('a@example.com')
    const eventReceived = new Promise(resolve => {
      const unsubscribe = services.storage.events.subscribe(event => {
        if (event.type !== 'session.ended') return
        unsubscribe()
        resolve(event)
      })
    })
    assert.equal(await services.sessions.endByToken(tokens.refreshToken, 'logout', caller()), true)
    assert.deepEqual(await eventReceived, { type: 'session.ended', sessionId: session.id, userId: user.id })
    assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'invalid_token')
    assert.equal(
      await refusedWith(services.sessions.refresh(tokens.refreshToken, null, caller())),
      'invalid_refresh_token',
    )
    assert.equal((await services.store.sessions.find(session.id))?.endedBy, 'logout')
    const endings = await services.store.endings.since(0, null, 10)
    assert.deepEqual(
      endings.map(({ kind, subjectId }) => [kind, subjectId]),
      [['session', session.id]],
    )
    assert.ok((await eventTypes(services, user.id)).includes('session_ended'))
    assert.equal(await refusedWith(services.sessions.authenticate(otherSession.tokens.accessToken)), 'none')
  })

  test('logging out is idempotent, accepts rotated tokens, and ignores unknown ones', async t => {
    const services = await openServices(engine, t)
    const { tokens, session, user } = await services.signIn('a@example.com')
    const refreshResult = await services.sessions.refresh(tokens.refreshToken, null, caller())
    assert.equal(await services.sessions.endByToken(tokens.refreshToken, 'logout', caller()), true)
    assert.equal(
      await refusedWith(services.sessions.authenticate(refreshResult.tokens.accessToken)),
      'invalid_token',
    )
    assert.equal(
      await refusedWith(services.sessions.refresh(refreshResult.tokens.refreshToken, null, caller())),
      'invalid_refresh_token',
    )
    const sessionBefore = await services.store.sessions.find(session.id)
    services.clock.advance(MINUTE)
    await services.sessions.endByToken(refreshResult.tokens.refreshToken, 'logout', caller())
    assert.deepEqual(await services.store.sessions.find(session.id), sessionBefore)
    assert.equal((await eventTypes(services, user.id)).filter(type => type === 'session_ended').length, 1)
    for (const unknown of ['', 'svr_', 'x', `svr_${'A'.repeat(72)}`, tokens.accessToken]) {
      assert.equal(await services.sessions.endByToken(unknown, 'logout', caller()), false)
    }
  })

  test('a session ends after the configured idle time, to the millisecond', async t => {
    const services = await openServices(engine, t, { lifetimes: { refreshIdleSeconds: 100 } })
    const usedSession = await services.signIn('a@example.com')
    const idleSession = await services.signIn('a@example.com')
    services.clock.advance(99_999)
    assert.equal(await refusedWith(services.sessions.authenticate(idleSession.tokens.accessToken)), 'none')
    const refreshResult = await services.sessions.refresh(usedSession.tokens.refreshToken, null, caller())
    services.clock.advance(1)
    assert.equal(
      await refusedWith(services.sessions.authenticate(idleSession.tokens.accessToken)),
      'invalid_token',
    )
    assert.equal(
      await refusedWith(services.sessions.refresh(idleSession.tokens.refreshToken, null, caller())),
      'invalid_refresh_token',
    )
    const listedSessions = await services.sessions.list(usedSession.user.id, page)
    assert.deepEqual(
      listedSessions.rows.map(({ id }) => id),
      [usedSession.session.id],
    )
    services.clock.advance(99_998)
    assert.equal(
      await refusedWith(services.sessions.refresh(refreshResult.tokens.refreshToken, null, caller())),
      'none',
    )
  })

  test('refreshing does not extend the absolute lifetime', async t => {
    const services = await openServices(engine, t, {
      lifetimes: { refreshIdleSeconds: 100, sessionSeconds: 250 },
    })
    const { tokens } = await services.signIn('a@example.com')
    let token = tokens.refreshToken
    for (const [step, left] of [
      [90_000, 100],
      [90_000, 70],
      [69_999, 1],
    ] as const) {
      services.clock.advance(step)
      const refreshResult = await services.sessions.refresh(token, null, caller())
      assert.equal(refreshResult.tokens.refreshExpiresIn, left)
      token = refreshResult.tokens.refreshToken
    }
    services.clock.advance(1)
    assert.equal(await refusedWith(services.sessions.refresh(token, null, caller())), 'invalid_refresh_token')
  })

  test('sessions are listed to their owner, newest first, and ended by id', async t => {
    const services = await openServices(engine, t)
    const ownSessions = []
    for (let index = 0; index < 3; index++) {
      ownSessions.push(await services.signIn('a@example.com'))
      services.clock.advance(1000)
    }
    const otherUser = await services.signIn('b@example.com')
    const userId = ownSessions[0]!.user.id
    const listedIds = async () => (await services.sessions.list(userId, page)).rows.map(({ id }) => id)
    assert.deepEqual(await listedIds(), ownSessions.map(({ session }) => session.id).reverse())

    for (const foreign of [otherUser.session.id, userId]) {
      assert.equal(await refusedWith(services.sessions.end(userId, foreign, caller())), 'not_found')
    }
    await services.sessions.end(userId, ownSessions[1]!.session.id, caller())
    await services.sessions.end(userId, ownSessions[1]!.session.id, caller())
    assert.deepEqual(await listedIds(), [ownSessions[2]!.session.id, ownSessions[0]!.session.id])
    assert.equal(
      await refusedWith(services.sessions.authenticate(ownSessions[1]!.tokens.accessToken)),
      'invalid_token',
    )
    assert.equal(await refusedWith(services.sessions.authenticate(otherUser.tokens.accessToken)), 'none')
  })

  test('a suspended person is refused even where the session was not ended', async t => {
    const services = await openServices(engine, t)
    const { user, tokens } = await services.signIn('ada@example.com')
    const { cookie } = await signInOnPage(services, 'ada@example.com')
    const now = services.clock.now()
    await services.storage.transaction(tx => audited(tx).users.suspend(user.id, now))
    assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'invalid_token')
    assert.equal(await services.sessions.authenticateCookie(cookie), null)
    assert.equal(
      await refusedWith(services.sessions.refresh(tokens.refreshToken, null, caller())),
      'invalid_refresh_token',
    )
    await services.storage.transaction(tx => audited(tx).users.activate(user.id, now))
    assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'none')
  })

  test('sessions are found by id only for their owner', async t => {
    const services = await openServices(engine, t)
    const [own, other] = [await services.signIn('a@example.com'), await services.signIn('b@example.com')]
    const found = await services.sessions.findMany(own.user.id, [own.session.id, other.session.id])
    assert.deepEqual(
      [...found].map(([id, session]) => [id, session.userId]),
      [[own.session.id, own.user.id]],
    )
  })

  test('all other sessions are ended at once', async t => {
    const services = await openServices(engine, t)
    const otherSessions = [await services.signIn('a@example.com'), await services.signIn('a@example.com')]
    const currentSession = await services.signIn('a@example.com')
    const otherUser = await services.signIn('b@example.com')
    await services.sessions.endOthers(currentSession.user.id, currentSession.session.id, caller())
    for (const { tokens } of otherSessions) {
      assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'invalid_token')
    }
    assert.equal(await refusedWith(services.sessions.authenticate(currentSession.tokens.accessToken)), 'none')
    assert.equal(await refusedWith(services.sessions.authenticate(otherUser.tokens.accessToken)), 'none')
    const endedIds = (await services.store.endings.since(0, null, 10)).map(({ subjectId }) => subjectId)
    assert.deepEqual(endedIds.sort(), otherSessions.map(({ session }) => session.id).sort())
    const events = await eventTypes(services, currentSession.user.id)
    assert.equal(events.filter(type => type === 'session_ended').length, 2)
  })

  test('a page cookie authenticates pages only, and a refresh token is not accepted as cookie', async t => {
    const services = await openServices(engine, t)
    const { cookie, user } = await signInOnPage(services, 'a@example.com')
    const { tokens } = await services.signIn('a@example.com')
    assert.equal((await services.sessions.authenticateCookie(cookie))?.user.id, user.id)
    assert.equal(await refusedWith(services.sessions.authenticate(cookie)), 'invalid_token')
    assert.equal(
      await refusedWith(services.sessions.refresh(cookie, null, caller())),
      'invalid_refresh_token',
    )
    assert.equal(await services.sessions.endByToken(cookie, 'logout', caller()), false)
    for (const wrong of [
      '',
      tokens.refreshToken,
      tokens.accessToken,
      `${cookie}A`,
      `svp_${'A'.repeat(64)}`,
    ]) {
      assert.equal(await services.sessions.authenticateCookie(wrong), null)
    }
  })

  test('a page session is extended by use, and its row is written at most once a minute', async t => {
    const services = await openServices(engine, t, { lifetimes: { refreshIdleSeconds: 300 } })
    const { cookie, session } = await signInOnPage(services, 'a@example.com')
    const lastUsed = async () =>
      (await services.store.sessions.find(session.id))!.lastUsedAt - session.createdAt
    services.clock.advance(MINUTE - 1)
    assert.ok(await services.sessions.authenticateCookie(cookie))
    assert.equal(await lastUsed(), 0)
    services.clock.advance(1)
    assert.ok(await services.sessions.authenticateCookie(cookie))
    assert.equal(await lastUsed(), MINUTE)
    services.clock.advance(299_999)
    assert.ok(await services.sessions.authenticateCookie(cookie))
    services.clock.advance(300_000)
    assert.equal(await services.sessions.authenticateCookie(cookie), null)
  })

  test('the id of a session is no credential', async t => {
    const services = await openServices(engine, t)
    const { cookie } = await signInOnPage(services, 'a@example.com')
    const { tokens } = await services.signIn('a@example.com')
    assert.equal(await services.sessions.authenticateCookie(forgedFrom(cookie)), null)
    const forgedToken = forgedFrom(tokens.refreshToken)
    assert.equal(await services.sessions.endByToken(forgedToken, 'logout', caller()), false)
    assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'none')
  })

  test('the cookie of an ended page session is refused at once', async t => {
    const services = await openServices(engine, t)
    const { cookie, session, user } = await signInOnPage(services, 'a@example.com')
    await services.sessions.end(user.id, session.id, caller())
    assert.equal(await services.sessions.authenticateCookie(cookie), null)
  })

  test('a genuine credential of one kind is refused for a session of the other', async t => {
    const services = await openServices(engine, t)
    const { user, session: pageSession } = await signInOnPage(services, 'a@example.com')
    const signInResult = await services.signIn('a@example.com')
    const apiSession = (await services.store.sessions.find(signInResult.session.id))!
    const secretOf = ({ id, sealedSecret }: typeof apiSession) =>
      services.secrets.open('session-secret', sealedSecret, id)
    const sign = (session: typeof apiSession) =>
      signAccessToken(services, accessTokenOf(services, user, session, 900, services.clock.now())).accessToken
    assert.equal(await refusedWith(services.sessions.authenticate(sign(apiSession))), 'none')
    assert.equal(await refusedWith(services.sessions.authenticate(sign(pageSession))), 'invalid_token')
    assert.ok(await services.sessions.authenticateCookie(pageCookie(pageSession.id, secretOf(pageSession))))
    assert.equal(
      await services.sessions.authenticateCookie(pageCookie(apiSession.id, secretOf(apiSession))),
      null,
    )
    const token = refreshToken(pageSession.id, pageSession.counter, secretOf(pageSession))
    const refreshing = services.sessions.refresh(token, null, caller())
    assert.equal(await refusedWith(refreshing), 'invalid_refresh_token')
    assert.equal(await services.sessions.endByToken(token, 'logout', caller()), false)
    const sessionAfterwards = await services.store.sessions.find(pageSession.id)
    assert.equal(sessionAfterwards?.endedAt, null)
  })

  test('an access token of another person, of no session and of another type is refused', async t => {
    const services = await openServices(engine, t)
    const { user, session } = await services.signIn('a@example.com')
    const { user: otherUser } = await services.signIn('b@example.com')
    const now = Math.floor(services.clock.now() / 1000)
    const validClaims = {
      type: 'access',
      iss: services.publicUrl,
      aud: services.publicUrl,
      sub: user.id,
      client_id: 'console',
      sid: session.id,
      role: user.role,
      iat: now,
      exp: now + 900,
      jti: newId(services.clock.now()),
    }
    const refusalOfClaims = (change: Record<string, unknown>) =>
      refusedWith(services.sessions.authenticate(services.jwt.sign('at+jwt', { ...validClaims, ...change })))
    assert.equal(await refusalOfClaims({}), 'none')
    for (const change of [
      { sub: otherUser.id },
      { sid: newId(services.clock.now()) },
      { sid: 'no id' },
      { sid: 7 },
      { sid: [session.id] },
      { sid: undefined },
      { type: 'agent_ws' },
    ])
      assert.equal(await refusalOfClaims(change), 'invalid_token', JSON.stringify(change))
  })

  test('no stored value of a session is accepted as a credential', async t => {
    const services = await openServices(engine, t)
    const { tokens, session } = await services.signIn('a@example.com')
    await services.sessions.refresh(tokens.refreshToken, 'a-key-of-16-chars', caller())
    const row = await services.store.sessions.find(session.id)
    const dump = JSON.stringify(row)
    assert.ok(!dump.includes(tokens.refreshToken.slice(4)))
    assert.ok(!dump.includes('a-key-of-16-chars'))
    assert.doesNotMatch(dump, /\bsv[rp]_/)
  })
})
