import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refreshToken } from '../../src/sessions/refresh-token.ts'
import { forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, race, refusedWith, type Services } from '../support/services.ts'

const page = { limit: 50, after: null }
const IDEMPOTENCY_KEY = 'one-honest-client-1'
const OTHER_IDEMPOTENCY_KEY = 'another-client-0002'

function refresh({ sessions }: Services, token: string, key: string | null = null) {
  return sessions.refresh(token, key, caller())
}

/** Whether the session has ended, checked without using up a token. */
async function isEnded({ store }: Services, sessionId: string): Promise<boolean> {
  return (await store.sessions.find(sessionId))!.endedAt !== null
}

forEachEngine(engine => {
  test('every refresh returns a new refresh token and a valid access token', async t => {
    const services = await openServices(engine, t)
    const firstSignIn = await services.signIn('a@example.com')
    services.clock.advance(60_000)
    const firstRefresh = await refresh(services, firstSignIn.tokens.refreshToken)
    const secondRefresh = await refresh(services, firstRefresh.tokens.refreshToken)
    const tokens = [firstSignIn.tokens, firstRefresh.tokens, secondRefresh.tokens]
    assert.equal(new Set(tokens.map(({ refreshToken }) => refreshToken)).size, 3)
    assert.equal(new Set(tokens.map(({ accessToken }) => accessToken)).size, 3)
    assert.equal(firstRefresh.session.id, firstSignIn.session.id)
    assert.equal(firstRefresh.user.id, firstSignIn.user.id)
    assert.equal(firstRefresh.tokens.refreshExpiresIn, 2_592_000)
    assert.equal(
      (await services.sessions.authenticate(secondRefresh.tokens.accessToken)).session.id,
      firstSignIn.session.id,
    )
  })

  test('a reused refresh token ends its session only, and its owner is notified once', async t => {
    const services = await openServices(engine, t)
    const stolenSession = await services.signIn('a@example.com')
    const otherSession = await services.signIn('a@example.com')
    const firstRefresh = await refresh(services, stolenSession.tokens.refreshToken)
    const secondRefresh = await refresh(services, firstRefresh.tokens.refreshToken)
    for (const token of [stolenSession, firstRefresh, stolenSession].map(
      ({ tokens }) => tokens.refreshToken,
    )) {
      assert.equal(await refusedWith(refresh(services, token)), 'refresh_token_reused')
    }
    assert.equal(
      await refusedWith(refresh(services, secondRefresh.tokens.refreshToken)),
      'invalid_refresh_token',
    )
    for (const { tokens } of [stolenSession, firstRefresh, secondRefresh]) {
      assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'invalid_token')
    }
    assert.equal(await refusedWith(refresh(services, otherSession.tokens.refreshToken)), 'none')

    const mails = await services.mailsTo('a@example.com', 'refresh_token_reused')
    assert.deepEqual(mails, [
      { kind: 'refresh_token_reused', at: services.clock.now(), network: '192.0.2.1', client: 'test' },
    ])
    const events = (await services.store.securityEvents.list(stolenSession.user.id, page)).rows
    const reuseEvents = events.filter(({ type }) => type === 'refresh_token_reused')
    assert.deepEqual(
      reuseEvents.map(({ sessionId }) => sessionId),
      [stolenSession.session.id],
    )
    const endings = await services.store.endings.since(0, null, 10)
    assert.deepEqual(
      endings.map(({ subjectId }) => subjectId),
      [stolenSession.session.id],
    )
    assert.equal((await services.store.sessions.find(stolenSession.session.id))?.endedBy, 'reuse')
  })

  test('the end of a session by reuse is published to every node', async t => {
    const services = await openServices(engine, t)
    const { tokens, session, user } = await services.signIn('a@example.com')
    await refresh(services, tokens.refreshToken)
    const eventReceived = new Promise(resolve => {
      const unsubscribe = services.storage.events.subscribe(event => {
        if (event.type !== 'session.ended') return
        unsubscribe()
        resolve(event)
      })
    })
    await refusedWith(refresh(services, tokens.refreshToken))
    assert.deepEqual(await eventReceived, { type: 'session.ended', sessionId: session.id, userId: user.id })
  })

  test('a retry with the same token and Idempotency-Key gets the same successor until that is used', async t => {
    const services = await openServices(engine, t)
    const { tokens } = await services.signIn('a@example.com')
    const answers = [await refresh(services, tokens.refreshToken, IDEMPOTENCY_KEY)]
    for (let again = 0; again < 3; again++) {
      services.clock.advance(86_400_000)
      answers.push(await refresh(services, tokens.refreshToken, IDEMPOTENCY_KEY))
    }
    assert.equal(new Set(answers.map(answer => answer.tokens.refreshToken)).size, 1)
    assert.equal(answers[3]!.tokens.refreshExpiresIn, 2_592_000 - 3 * 86_400)
    assert.equal(await refusedWith(services.sessions.authenticate(answers[3]!.tokens.accessToken)), 'none')
    assert.equal(
      await refusedWith(refresh(services, answers[3]!.tokens.refreshToken, OTHER_IDEMPOTENCY_KEY)),
      'none',
    )
  })

  test('a retry after the successor was used is refused, and does not end the session', async t => {
    const services = await openServices(engine, t)
    const { tokens, session } = await services.signIn('a@example.com')
    const firstRefresh = await refresh(services, tokens.refreshToken, IDEMPOTENCY_KEY)
    const secondRefresh = await refresh(services, firstRefresh.tokens.refreshToken, OTHER_IDEMPOTENCY_KEY)
    assert.equal(
      await refusedWith(refresh(services, tokens.refreshToken, IDEMPOTENCY_KEY)),
      'invalid_refresh_token',
    )
    assert.equal(await isEnded(services, session.id), false)
    assert.equal(
      await refusedWith(refresh(services, secondRefresh.tokens.refreshToken, IDEMPOTENCY_KEY)),
      'none',
    )
  })

  test('a retry is distinguished from reuse up to sixteen rotations back', async t => {
    const services = await openServices(engine, t)
    const { tokens, session } = await services.signIn('a@example.com')
    const refreshTokens = [tokens.refreshToken]
    for (let turn = 0; turn < 17; turn++) {
      refreshTokens.push(
        (await refresh(services, refreshTokens.at(-1)!, `key-of-rotation-${turn}`)).tokens.refreshToken,
      )
    }
    assert.equal(
      await refusedWith(refresh(services, refreshTokens[1]!, 'key-of-rotation-1')),
      'invalid_refresh_token',
    )
    assert.equal(await isEnded(services, session.id), false)
    assert.equal(
      await refusedWith(refresh(services, refreshTokens[0]!, 'key-of-rotation-0')),
      'refresh_token_reused',
    )
  })

  for (const [what, key] of [
    ['without a key', null],
    ['with another key', OTHER_IDEMPOTENCY_KEY],
  ] as const) {
    test(`a replay ${what} is reuse, also if the rotation had an Idempotency-Key`, async t => {
      const services = await openServices(engine, t)
      const { tokens, session } = await services.signIn('a@example.com')
      const refreshResult = await refresh(services, tokens.refreshToken, IDEMPOTENCY_KEY)
      assert.equal(await refusedWith(refresh(services, tokens.refreshToken, key)), 'refresh_token_reused')
      assert.equal(await isEnded(services, session.id), true)
      assert.equal(
        await refusedWith(refresh(services, refreshResult.tokens.refreshToken)),
        'invalid_refresh_token',
      )
      assert.equal(
        await refusedWith(refresh(services, tokens.refreshToken, IDEMPOTENCY_KEY)),
        'invalid_refresh_token',
      )
    })
  }

  test('a replay with an Idempotency-Key of a rotation without one is reuse', async t => {
    const services = await openServices(engine, t)
    const { tokens } = await services.signIn('a@example.com')
    await refresh(services, tokens.refreshToken)
    assert.equal(
      await refusedWith(refresh(services, tokens.refreshToken, IDEMPOTENCY_KEY)),
      'refresh_token_reused',
    )
  })

  test('twenty concurrent refreshes with one Idempotency-Key get the same successor', async t => {
    const services = await openServices(engine, t)
    const { tokens, session } = await services.signIn('a@example.com')
    const { won, refused } = await race(20, () => refresh(services, tokens.refreshToken, IDEMPOTENCY_KEY))
    assert.deepEqual(refused, [])
    assert.equal(new Set(won.map(answer => answer.tokens.refreshToken)).size, 1)
    assert.equal((await services.store.sessions.find(session.id))?.counter, 1)
    for (const answer of won) {
      assert.equal(await refusedWith(services.sessions.authenticate(answer.tokens.accessToken)), 'none')
    }
    assert.equal(await refusedWith(refresh(services, won[0]!.tokens.refreshToken)), 'none')
  })

  test('of twenty concurrent refreshes without Idempotency-Key one succeeds, and the others end the session as reuse', async t => {
    const services = await openServices(engine, t)
    const { tokens, session } = await services.signIn('a@example.com')
    const { won, refused } = await race(20, () => refresh(services, tokens.refreshToken))
    assert.equal(won.length, 1)
    assert.deepEqual(refused, Array(19).fill('refresh_token_reused'))
    assert.equal(await isEnded(services, session.id), true)
    assert.equal(await refusedWith(refresh(services, won[0]!.tokens.refreshToken)), 'invalid_refresh_token')
    assert.equal((await services.mailsTo('a@example.com', 'refresh_token_reused')).length, 1)
  })

  test('no refresh succeeds after a logout was answered', async t => {
    const services = await openServices(engine, t)
    for (let round = 0; round < 10; round++) {
      const { tokens } = await services.signIn('a@example.com')
      const pendingRace = race(8, () => refresh(services, tokens.refreshToken, IDEMPOTENCY_KEY))
      await services.sessions.endByToken(tokens.refreshToken, 'logout', caller())
      const latestTokens = [tokens, ...(await pendingRace).won.map(answer => answer.tokens)]
      for (const { refreshToken, accessToken } of latestTokens) {
        assert.equal(
          await refusedWith(refresh(services, refreshToken, IDEMPOTENCY_KEY)),
          'invalid_refresh_token',
        )
        assert.equal(await refusedWith(services.sessions.authenticate(accessToken)), 'invalid_token')
      }
    }
  })

  test('without a grace period a used token is refused also by a node whose clock is behind', async t => {
    const services = await openServices(engine, t)
    const { tokens, session } = await services.signIn('a@example.com')
    services.clock.advance(1000)
    await refresh(services, tokens.refreshToken)
    services.clock.advance(-500)
    assert.equal(await refusedWith(refresh(services, tokens.refreshToken)), 'refresh_token_reused')
    assert.ok(await isEnded(services, session.id))
  })

  test('within the grace period the previous token is accepted repeatedly, until its last millisecond', async t => {
    const services = await openServices(engine, t, { lifetimes: { refreshGraceSeconds: 10 } })
    const { tokens, session } = await services.signIn('a@example.com')
    const firstRefresh = await refresh(services, tokens.refreshToken)
    for (const step of [0, 3000, 3000, 3999]) {
      services.clock.advance(step)
      const repeatedRefresh = await refresh(services, tokens.refreshToken)
      assert.equal(repeatedRefresh.tokens.refreshToken, firstRefresh.tokens.refreshToken)
    }
    services.clock.advance(1)
    assert.equal(await refusedWith(refresh(services, tokens.refreshToken)), 'refresh_token_reused')
    assert.equal(await isEnded(services, session.id), true)
  })

  test('the grace period covers neither older tokens, nor another Idempotency-Key, nor rotations with one', async t => {
    const services = await openServices(engine, t, { lifetimes: { refreshGraceSeconds: 10 } })
    const a = await services.signIn('a@example.com')
    await refresh(services, (await refresh(services, a.tokens.refreshToken)).tokens.refreshToken)
    assert.equal(await refusedWith(refresh(services, a.tokens.refreshToken)), 'refresh_token_reused')
    const b = await services.signIn('b@example.com')
    await refresh(services, b.tokens.refreshToken)
    assert.equal(
      await refusedWith(refresh(services, b.tokens.refreshToken, IDEMPOTENCY_KEY)),
      'refresh_token_reused',
    )
    const c = await services.signIn('c@example.com')
    await refresh(services, c.tokens.refreshToken, IDEMPOTENCY_KEY)
    assert.equal(await refusedWith(refresh(services, c.tokens.refreshToken)), 'refresh_token_reused')
  })

  test('other credentials and altered tokens are refused, and end no session', async t => {
    const services = await openServices(engine, t)
    const email = address('a@example.com')
    const { tokens, session } = await services.signIn(email)
    const otherUser = await services.signIn('b@example.com')
    const link = await services.sendTo(email)
    const bytesOf = (token: string) => Buffer.from(token.slice(4), 'base64url')
    const ownBytes = bytesOf(tokens.refreshToken)
    const otherBytes = bytesOf(otherUser.tokens.refreshToken)
    const forgeries = [
      Buffer.concat([ownBytes.subarray(0, 22), otherBytes.subarray(22)]),
      Buffer.concat([ownBytes.subarray(0, 16), otherBytes.subarray(16)]),
      Buffer.concat([ownBytes.subarray(0, 21), Buffer.from([1]), ownBytes.subarray(22)]),
    ]
    const refusedTokens = [
      '',
      tokens.accessToken,
      link.token,
      link.code,
      `svc_${'a'.repeat(32)}`,
      tokens.refreshToken.slice(0, -1),
      `${tokens.refreshToken}A`,
      tokens.refreshToken.toLowerCase(),
      ...forgeries.map(forgery => `svr_${forgery.toString('base64url')}`),
    ]
    for (const token of refusedTokens) {
      assert.equal(await refusedWith(refresh(services, token)), 'invalid_refresh_token', token)
    }
    assert.equal(await isEnded(services, session.id), false)
    assert.equal(await refusedWith(refresh(services, tokens.refreshToken)), 'none')
  })

  test('a token that is ahead of its session, as after a restore, is refused and ends nothing', async t => {
    const services = await openServices(engine, t)
    const { tokens, session: signedIn } = await services.signIn('a@example.com')
    const session = (await services.store.sessions.find(signedIn.id))!
    const secret = services.secrets.open('session-secret', session.sealedSecret, session.id)
    for (const ahead of [1, 2, 1000]) {
      const token = refreshToken(session.id, session.counter + ahead, secret)
      for (const key of [null, IDEMPOTENCY_KEY])
        assert.equal(await refusedWith(refresh(services, token, key)), 'invalid_refresh_token')
    }
    assert.equal(await isEnded(services, session.id), false)
    assert.equal(await refusedWith(refresh(services, tokens.refreshToken)), 'none')
  })

  test('a suspended account cannot refresh, and activating it does not restore its sessions', async t => {
    const services = await openServices(engine, t)
    const { tokens, user } = await services.signIn('a@example.com')
    await services.users.suspend(user.id)
    assert.equal(await refusedWith(refresh(services, tokens.refreshToken)), 'invalid_refresh_token')
    await services.users.activate(user.id)
    assert.equal(await refusedWith(refresh(services, tokens.refreshToken)), 'invalid_refresh_token')
  })

  test('a refresh that one node made can be repeated with its key on another, and without the key counts as reuse there', async t => {
    const services = await openServices(engine, t)
    const node = await services.opened.reopen()
    const otherNode = await openServices(engine, t, { on: { node, of: services.opened } })
    const { tokens } = await services.signIn('a@example.com')
    const refreshResult = await refresh(otherNode, tokens.refreshToken, IDEMPOTENCY_KEY)
    const repeatedRefresh = await refresh(services, tokens.refreshToken, IDEMPOTENCY_KEY)
    assert.equal(repeatedRefresh.tokens.refreshToken, refreshResult.tokens.refreshToken)
    assert.equal(await refusedWith(refresh(otherNode, tokens.refreshToken)), 'refresh_token_reused')
    assert.equal(
      await refusedWith(services.sessions.authenticate(refreshResult.tokens.accessToken)),
      'invalid_token',
    )
  })
})
