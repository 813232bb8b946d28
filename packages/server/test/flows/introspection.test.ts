import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toScopes } from '../../src/api-keys/api-key.ts'
import { createApps } from '../../src/apps/apps.ts'
import { MINUTE, SECOND } from '../../src/clock.ts'
import { createRevocations, FEED_WINDOW } from '../../src/endings/revocation-feed.ts'
import { createIntrospection } from '../../src/introspection/introspection.ts'
import { forEachEngine } from '../support/engines.ts'
import { caller, openServices, PUBLIC_URL, type Services } from '../support/services.ts'

const INACTIVE_ANSWER = { active: false }

async function openCredentials(services: Services, expiresAt: number | null = null) {
  const { user, session, tokens } = await services.signIn('ada@example.com')
  const newKey = {
    name: null,
    scopes: toScopes(['agent:connect']),
    expiresAt,
    appId: 'service-sdk',
    allowedNetworks: [],
  }
  const { key, apiKey } = await services.apiKeys.create(user.id, newKey, caller())
  const { token } = await services.agentTokens.exchange(key, undefined, caller())
  const { introspect } = createIntrospection(services)
  return { user, session, accessToken: tokens.accessToken, key, apiKey, token, introspect, tokens }
}

forEachEngine(engine => {
  test('introspection of a valid key, access token or agent token returns its subject and scopes', async t => {
    const services = await openServices(engine, t)
    const { user, session, accessToken, key, apiKey, token, introspect } = await openCredentials(services)
    const shownFields = async (text: string) => {
      const { active, type, sub, client_id, scope, key_id, sid } = (await introspect(text)) as Record<
        string,
        unknown
      >
      return { active, type, sub, client_id, scope, key_id, sid }
    }
    const commonFields = { active: true, sub: user.id, scope: undefined, key_id: undefined, sid: undefined }
    const keyFields = { ...commonFields, client_id: 'service-sdk', scope: 'agent:connect', key_id: apiKey.id }
    assert.deepEqual(await shownFields(key), { ...keyFields, type: 'api_key' })
    assert.deepEqual(await shownFields(token), { ...keyFields, type: 'agent_ws' })
    assert.deepEqual(await shownFields(accessToken), {
      ...commonFields,
      type: 'access',
      client_id: 'console',
      sid: session.id,
    })
    assert.doesNotMatch(JSON.stringify(await introspect(accessToken)), /ada@/)
  })

  test('introspection of anything unknown returns only `active: false`', async t => {
    const services = await openServices(engine, t)
    const { introspect, tokens } = await openCredentials(services)
    const payloadWithNul = Buffer.from(JSON.stringify({ aud: 'a\0b' })).toString('base64url')
    for (const text of [
      '',
      'x',
      '..',
      `svc_${'0'.repeat(32)}`,
      tokens.refreshToken,
      `e30.${payloadWithNul}.x`,
      'a.bnVsbA.c',
    ]) {
      assert.deepEqual(await introspect(text), INACTIVE_ANSWER)
    }
  })

  test('revoking a key makes its agent tokens inactive', async t => {
    const services = await openServices(engine, t)
    const { user, apiKey, key, token, introspect } = await openCredentials(services)
    await services.apiKeys.revoke(user.id, apiKey.id, caller())
    assert.deepEqual([await introspect(key), await introspect(token)], [INACTIVE_ANSWER, INACTIVE_ANSWER])
  })

  test('a rotation with a short overlap makes issued agent tokens inactive', async t => {
    const services = await openServices(engine, t)
    const { user, apiKey, token, introspect } = await openCredentials(services)
    await services.apiKeys.rotate(user.id, apiKey.id, 60, caller())
    services.clock.advance(60 * SECOND - 1)
    assert.equal((await introspect(token)).active, true)
    services.clock.advance(1)
    assert.deepEqual(await introspect(token), INACTIVE_ANSWER)
  })

  test('the end of a session makes its access tokens inactive', async t => {
    const services = await openServices(engine, t)
    const { user, session, accessToken, introspect } = await openCredentials(services)
    await services.sessions.end(user.id, session.id, caller())
    assert.deepEqual(await introspect(accessToken), INACTIVE_ANSWER)
  })

  test('suspending the owner makes all credentials inactive; activating restores keys and their tokens', async t => {
    const services = await openServices(engine, t)
    const { user, key, token, accessToken, introspect } = await openCredentials(services)
    const activeStates = async () =>
      (await Promise.all([key, token, accessToken].map(text => introspect(text)))).map(({ active }) => active)
    await services.users.suspend(user.id)
    assert.deepEqual(await activeStates(), [false, false, false])
    await services.users.activate(user.id)
    assert.deepEqual(await activeStates(), [true, true, false])
  })

  test('an expired key and its tokens are inactive', async t => {
    const services = await openServices(engine, t)
    const { key, token, introspect } = await openCredentials(services, services.clock.now() + MINUTE)
    services.clock.advance(MINUTE - 1)
    assert.deepEqual([(await introspect(key)).active, (await introspect(token)).active], [true, true])
    services.clock.advance(1)
    assert.deepEqual([await introspect(key), await introspect(token)], [INACTIVE_ANSWER, INACTIVE_ANSWER])
  })

  test('a token for a registered app’s audience is active', async t => {
    const services = await openServices(engine, t)
    const { key, introspect } = await openCredentials(services)
    const audience = 'https://shop.example.com'
    await createApps(services).register({ id: 'shop', name: 'Shop', audience, verifyUrl: null })
    const { token } = await services.agentTokens.exchange(key, audience, caller())
    const answer = (await introspect(token)) as Record<string, unknown>
    assert.deepEqual([answer.active, answer.aud, answer.iss], [true, audience, PUBLIC_URL])
  })

  test('introspection changes nothing', async t => {
    const services = await openServices(engine, t)
    const { user, apiKey, session, key, accessToken, introspect } = await openCredentials(services)
    const rowsBefore = [
      await services.apiKeys.get(user.id, apiKey.id),
      await services.store.sessions.find(session.id),
    ]
    services.clock.advance(2 * MINUTE)
    await introspect(key)
    await introspect(accessToken)
    const rowsAfter = [
      await services.apiKeys.get(user.id, apiKey.id),
      await services.store.sessions.find(session.id),
    ]
    assert.deepEqual(rowsAfter, rowsBefore)
  })

  test('the revocation feed contains each ended key, session and user of the last 20 minutes', async t => {
    const services = await openServices(engine, t)
    const { user, session, apiKey } = await openCredentials(services)
    const feed = createRevocations(services)
    assert.deepEqual((await feed.since(null, 100))?.endings, [])
    let receivedCount = 0
    t.after(feed.subscribe(() => receivedCount++))
    await services.apiKeys.update(user.id, apiKey.id, { allowedNetworks: ['10.0.0.0/8'] }, 'person')
    assert.deepEqual((await feed.since(null, 100))?.endings, [], 'a key with changed networks stays active')
    await services.apiKeys.revoke(user.id, apiKey.id, caller())
    await services.sessions.end(user.id, session.id, caller())
    await services.users.suspend(user.id)
    const newestPage = (await feed.since(null, 100))!
    const entries = new Set(newestPage.endings.map(({ kind, subjectId }) => `${kind} ${subjectId}`))
    assert.deepEqual(entries, new Set([`api_key ${apiKey.id}`, `session ${session.id}`, `user ${user.id}`]))
    services.clock.advance(FEED_WINDOW)
    assert.deepEqual((await feed.since(null, 100))?.endings, newestPage.endings)
    services.clock.advance(1)
    assert.deepEqual((await feed.since(null, 100))?.endings, [])
    if (engine === 'sqlite') assert.ok(receivedCount > 0)
  })

  test('the feed contains a rotated key when its overlap ends, since older tokens may be valid longer', async t => {
    const services = await openServices(engine, t)
    const { user, apiKey } = await openCredentials(services)
    const feed = createRevocations(services)
    const startPage = (await feed.since(null, 2))!
    await services.apiKeys.rotate(user.id, apiKey.id, 60, caller())
    services.clock.advance(MINUTE - 1)
    const pageBeforeEnd = (await feed.since(startPage.cursor, 2))!
    assert.deepEqual(pageBeforeEnd.endings, [], 'the key works until its overlap ends')
    services.clock.advance(1)
    const endedSubjects = (await feed.since(pageBeforeEnd.cursor, 2))!.endings.map(({ kind, subjectId }) => [
      kind,
      subjectId,
    ])
    assert.ok(endedSubjects.some(([kind, subjectId]) => kind === 'api_key' && subjectId === apiKey.id))
    assert.deepEqual(
      (await feed.since(pageBeforeEnd.cursor, 1))!.endings.map(({ subjectId }) => subjectId),
      [apiKey.id],
    )
  })

  test('a page of the revocation feed whose keys are all active is empty, with has_more', async t => {
    const services = await openServices(engine, t)
    const { user, apiKey, session } = await openCredentials(services)
    for (const network of ['10.0.0.0/8', '11.0.0.0/8'])
      await services.apiKeys.update(user.id, apiKey.id, { allowedNetworks: [network] }, 'person')
    services.clock.advance(1)
    await services.sessions.end(user.id, session.id, caller())
    const feed = createRevocations(services)
    const firstPage = (await feed.since(null, 2))!
    assert.deepEqual([firstPage.endings.length, firstPage.hasMore], [0, true])
    const secondPage = (await feed.since(firstPage.cursor, 2))!
    assert.deepEqual([secondPage.endings[0]?.subjectId, secondPage.hasMore], [session.id, false])
  })

  test('the feed continues from its cursor without gaps, and refuses an invalid cursor', async t => {
    const services = await openServices(engine, t)
    const { user } = await openCredentials(services)
    const feed = createRevocations(services)
    const ids: string[] = []
    const newKey = { name: null, scopes: null, expiresAt: null, appId: 'hub', allowedNetworks: [] }
    for (let index = 0; index < 7; index++) {
      const { apiKey } = await services.apiKeys.create(user.id, newKey, caller())
      await services.apiKeys.revoke(user.id, apiKey.id, caller())
      ids.push(apiKey.id)
    }
    let cursor: string | null = null
    const seenIds = new Set<string>()
    for (let page = 0; page < 4; page++) {
      const page: { endings: { subjectId: string }[]; cursor: string } = (await feed.since(cursor, 2))!
      for (const { subjectId } of page.endings) seenIds.add(subjectId)
      cursor = page.cursor
    }
    assert.deepEqual(seenIds, new Set(ids))
    services.clock.advance(MINUTE)
    const pageAfterOneMinute = (await feed.since(cursor, 2))!
    services.clock.advance(MINUTE)
    assert.deepEqual(
      (await feed.since(pageAfterOneMinute.cursor, 2))?.endings,
      [],
      'old entries are not repeated',
    )
    assert.equal(await feed.since('nonsense', 2), null)
  })

  test('a cursor stays behind late commits, but never goes back before an entry that it has passed', async t => {
    const services = await openServices(engine, t)
    const { user, apiKey, session } = await openCredentials(services)
    const feed = createRevocations(services)
    await services.apiKeys.revoke(user.id, apiKey.id, caller())
    await services.sessions.end(user.id, session.id, caller())
    const firstPage = (await feed.since(null, 1))!
    for (const passed of [0, 10 * SECOND]) {
      services.clock.advance(passed)
      const restPage = (await feed.since(firstPage.cursor, 100))!
      assert.deepEqual([restPage.endings.length, restPage.hasMore], [1, false])
      assert.equal(restPage.cursor, firstPage.cursor)
    }
    services.clock.advance(1)
    const laterPage = (await feed.since(firstPage.cursor, 100))!
    assert.equal(laterPage.endings.length, 1)
    assert.deepEqual((await feed.since(laterPage.cursor, 100))!.endings, [])
  })

  test('a cursor as old as the feed skips the entries that it has passed, and an older one gets the whole feed only', async t => {
    const services = await openServices(engine, t)
    const { user, apiKey, session } = await openCredentials(services)
    const feed = createRevocations(services)
    await services.apiKeys.revoke(user.id, apiKey.id, caller())
    await services.sessions.end(user.id, session.id, caller())
    const allEndings = (await feed.since(null, 100))!.endings
    const firstPage = (await feed.since(null, 1))!
    services.clock.advance(FEED_WINDOW)
    assert.deepEqual((await feed.since(firstPage.cursor, 100))!.endings, allEndings.slice(1))
    services.clock.advance(1)
    assert.deepEqual((await feed.since(firstPage.cursor, 100))!.endings, [])
  })
})
