import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AppSettings } from '../../src/apps/app.ts'
import { createApps, type NewApp } from '../../src/apps/apps.ts'
import { newId } from '../../src/ids.ts'
import { aKey, aSession, insertUser } from '../contract/fixtures.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { race, refusedWith } from '../support/services.ts'

const SHOP: NewApp = { id: 'shop', name: 'Shop' }

forEachEngine(engine => {
  test('four apps exist initially, two of them first-party', async t => {
    const apps = await createApps(await openTestStorage(engine, t)).list()
    const appNames = apps.map(({ id, firstParty }) => `${id} ${firstParty}`).sort()
    assert.deepEqual(appNames, ['console true', 'hub true', 'keyway-cli false', 'service-sdk false'])
  })

  test('an app id and an audience belong to one app, also with concurrent registrations', async t => {
    const apps = createApps(await openTestStorage(engine, t))
    const { won } = await race(10, () => apps.register(SHOP))
    assert.equal(won.length, 1)
    assert.equal(await refusedWith(apps.register({ ...SHOP, id: 'hub' })), 'invalid_request')
    const audience = 'https://shop.example.com'
    await apps.register({ ...SHOP, id: 'one', audience })
    assert.equal(await refusedWith(apps.register({ ...SHOP, id: 'two', audience })), 'invalid_request')
  })

  test('an invalid id, name, audience or page is refused', async t => {
    const apps = createApps(await openTestStorage(engine, t))
    const invalidChanges: Partial<NewApp>[] = [
      { id: 'Shop' },
      { id: '-shop' },
      { id: 'a'.repeat(65) },
      { name: '' },
      { name: 'a\nb' },
      { name: '\ud800' },
      { name: 'x'.repeat(101) },
      { audience: 'shop' },
      { audience: 'ftp://shop.example.com' },
      { audience: 'https://user:pass@shop.example.com' },
      { audience: 'https://shop.example.com/#x' },
      { audience: 'https://shop.example.com/\0' },
      { verifyUrl: 'http://shop.example.com/verify' },
      { verifyUrl: 'javascript:alert(1)' },
    ]
    for (const change of invalidChanges) {
      assert.equal(
        await refusedWith(apps.register({ ...SHOP, ...change })),
        'invalid_request',
        JSON.stringify(change),
      )
    }
    await apps.register({ ...SHOP, verifyUrl: 'http://localhost:3000/verify', name: '😀'.repeat(100) })
  })

  test('an app cannot be registered for the service’s own audience, in any spelling', async t => {
    const ownAudiences = ['https://keyway.example.com', 'https://keyway.example.com/hub']
    const apps = createApps({ ...(await openTestStorage(engine, t)), ownAudiences })
    for (const audience of [
      ...ownAudiences,
      'https://keyway.example.com/',
      'https://keyway.example.com:443/hub/',
      'HTTPS://KEYWAY.example.com/hub?x',
    ])
      assert.equal(await refusedWith(apps.register({ ...SHOP, audience })), 'invalid_request', audience)
    await apps.register({ ...SHOP, audience: 'https://keyway.example.com/shop' })
  })

  test('a new secret that would remove another one than was named is refused and removes nothing', async t => {
    const testStorage = await openTestStorage(engine, t)
    const apps = createApps(testStorage)
    const { secret } = await apps.register(SHOP)
    testStorage.clock.advance(1)
    const secondSecret = await apps.newSecret('shop', undefined, null)
    testStorage.clock.advance(1)
    const [newest, oldest] = await apps.secrets('shop')
    for (const removes of [null, newest!.id])
      assert.equal(await refusedWith(apps.newSecret('shop', undefined, removes)), 'invalid_request')
    for (const kept of [secret!, secondSecret.secret]) assert.ok(await apps.authenticate('shop', kept))
    const { won, refused } = await race(20, () => apps.newSecret('shop', undefined, oldest!.id))
    assert.deepEqual([won.length, new Set(refused)], [1, new Set(['invalid_request'])])
    assert.equal(await apps.authenticate('shop', secret!), null)
    assert.ok(await apps.authenticate('shop', secondSecret.secret), 'the one that was not named stays')
  })

  test('only the two newest secrets of an app are accepted, and only for that app', async t => {
    const testStorage = await openTestStorage(engine, t)
    const apps = createApps(testStorage)
    await apps.register(SHOP)
    testStorage.clock.advance(1)
    const secrets: string[] = []
    for (let index = 0; index < 3; index++) {
      secrets.push((await apps.newSecret('shop')).secret)
      testStorage.clock.advance(1)
    }
    for (const secret of secrets) assert.match(secret, /^sva_[A-Za-z0-9_-]{43}$/)
    const authenticatedIds = await Promise.all(
      secrets.map(async secret => (await apps.authenticate('shop', secret))?.id),
    )
    assert.deepEqual(authenticatedIds, [undefined, 'shop', 'shop'])
    for (const [id, secret] of [
      ['hub', secrets[2]],
      ['shop', ''],
      ['shop', `${secrets[2]} `],
      ['SHOP', secrets[2]],
      ['nobody', secrets[2]],
      ['\0', secrets[2]],
    ] as [string, string][]) {
      assert.equal(await apps.authenticate(id, secret), null)
    }
    const storedHashes = await testStorage.storage.store.apps.secrets('shop')
    assert.ok(!storedHashes.some(hash => secrets.includes(hash)))
  })

  test('an app covers older keys and sessions with its id only if it adopts them, and their number is returned', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { clock } = testStorage
    const { store } = testStorage.storage
    const { id } = await insertUser(store)
    const now = clock.now()
    const olderKey = { appId: 'shop', createdAt: now - 10, expiresAt: null, revokedAt: null }
    await store.apiKeys.insert(aKey(id, olderKey))
    await store.apiKeys.insert(aKey(id, { ...olderKey, expiresAt: now + 1 }))
    await store.apiKeys.insert(aKey(id, { ...olderKey, expiresAt: now }))
    await store.apiKeys.insert(aKey(id, { ...olderKey, revokedAt: now }))
    await store.apiKeys.insert(aKey(id, { ...olderKey, createdAt: now }))
    await store.apiKeys.insert(aKey(id, { ...olderKey, appId: 'shop2' }))
    const session = { appId: 'shop', createdAt: now - 10, expiresAt: now + 1 }
    await store.sessions.insert(aSession(id, session))
    await store.sessions.insert(aSession(id, { ...session, expiresAt: now }))
    await store.sessions.insert(aSession(id, { ...session, endedAt: now, endedBy: 'logout' }))

    const apps = createApps(testStorage)
    const plainRegistration = await apps.register(SHOP)
    assert.deepEqual(plainRegistration.older, { keys: 2, sessions: 1 })
    assert.equal(plainRegistration.app.coversFrom, now)
    const adoptedRegistration = await apps.register({ ...SHOP, id: 'shop2', adopt: true })
    assert.deepEqual(adoptedRegistration.older, { keys: 1, sessions: 0 })
    assert.equal(adoptedRegistration.app.coversFrom, 0)
    assert.deepEqual(
      (await store.apps.list()).map(app => [app.id, app.coversFrom]),
      [
        ['console', 0],
        ['hub', 0],
        ['keyway-cli', 0],
        ['service-sdk', 0],
        ['shop', now],
        ['shop2', 0],
      ],
    )
  })

  test('an app registered by a node of the previous version covers keys and sessions created after its registration', async t => {
    const testStorage = await openTestStorage(engine, t)
    await createApps(testStorage).register({ ...SHOP, adopt: true })
    await testStorage.storage.engine.connection.execute('update apps set covers_from = null', [])
    const app = await testStorage.storage.store.apps.find('shop')
    assert.equal(app?.coversFrom, app?.createdAt)
  })

  test('an app gets its first secret when it is registered, but not one that authenticates without', async t => {
    const apps = createApps(await openTestStorage(engine, t))
    const { secret } = await apps.register(SHOP)
    assert.equal((await apps.authenticate('shop', secret!))?.id, 'shop')
    const callback = 'https://shop.example.com/callback'
    const publicApp = await apps.register({ ...SHOP, id: 'spa', isPublic: true, redirectUris: [callback] })
    assert.equal(publicApp.secret, null)
    assert.equal(await refusedWith(apps.newSecret('spa')), 'invalid_request')
    const jwksUri = 'https://shop.example.com/jwks.json'
    assert.equal((await apps.register({ ...SHOP, id: 'keyed', jwksUri })).secret, null)
  })

  test('a change of an app replaces the given settings, and keeps the others', async t => {
    const apps = createApps(await openTestStorage(engine, t))
    const { app, secret } = await apps.register({ ...SHOP, audience: 'https://shop.example.com' })
    const redirectUris = ['https://shop.example.com/callback', 'http://127.0.0.1/callback']
    const changes = {
      redirectUris,
      logoutUris: ['https://shop.example.com/'],
      backchannelLogoutUri: 'https://shop.example.com/logout',
      tokenAlg: 'RS256',
      scopes: ['keys:read', 'orders:read'],
      trusted: true,
      requirePkce: true,
    } as const
    assert.deepEqual(await apps.change('shop', changes), { ...app, ...changes })
    assert.deepEqual(await apps.find('shop'), { ...app, ...changes })
    assert.equal((await apps.change('console', { name: 'Ours', redirectUris })).firstParty, true)
    const clearedApp = await apps.change('shop', { audience: null, redirectUris: [], trusted: false })
    assert.deepEqual([clearedApp.audience, clearedApp.redirectUris, clearedApp.tokenAlg], [null, [], 'RS256'])
    assert.ok(await apps.authenticate('shop', secret!))
    await apps.change('shop', { isPublic: true })
    assert.equal(await apps.authenticate('shop', secret!), null)
    await apps.change('shop', { isPublic: false })
    assert.equal(await apps.authenticate('shop', secret!), null, 'the secret stays dropped')
    assert.equal(await refusedWith(apps.change('nobody', { name: 'x' })), 'not_found')
  })

  test('an audience is given to one app, also by concurrent changes', async t => {
    const apps = createApps(await openTestStorage(engine, t))
    const ids = Array.from({ length: 8 }, (_, at) => `app${at}`)
    for (const id of ids) await apps.register({ ...SHOP, id })
    const { won } = await race(8, at => apps.change(ids[at]!, { audience: 'https://one.example.com' }))
    assert.equal(won.length, 1)
    assert.equal(
      await refusedWith(apps.register({ ...SHOP, audience: 'https://one.example.com' })),
      'invalid_request',
    )
  })

  test('settings that would be unsafe or never match are refused, each with its name', async t => {
    const apps = createApps(await openTestStorage(engine, t))
    await apps.register(SHOP)
    const refusedChanges: [Partial<AppSettings>, RegExp][] = [
      ...[
        'http://shop.example.com/callback',
        'https://shop.example.com/#x',
        'https://user@shop.example.com/',
        'https://*.example.com/callback',
        'https://shop.example.com/a/../b',
        'https://Shop.example.com/callback',
        'https://shop.example.com:443/callback',
        'https:\\\\shop.example.com/callback',
        'javascript:alert(1)',
        'data:text/html,x',
        'shop://callback',
        '//shop.example.com/callback',
        '/callback',
        'com.example.shop:/callback',
        '',
      ].map(uri => [{ redirectUris: [uri] }, /^redirect_uris: /] as [Partial<AppSettings>, RegExp]),
      [{ redirectUris: Array.from({ length: 33 }, (_, n) => `https://a.example.com/${n}`) }, /at most 32/],
      [{ redirectUris: ['https://a.example.com/', 'https://a.example.com/'] }, /different/],
      [{ logoutUris: ['http://shop.example.com/'] }, /^logout_uris: /],
      [{ backchannelLogoutUri: 'http://shop.example.com/' }, /^backchannel_logout_uri: /],
      [{ jwksUri: 'http://shop.example.com/' }, /^jwks_uri: /],
      [{ jwksUri: 'https://shop.example.com/', isPublic: true }, /^jwks_uri: .*public/],
      [{ tokenAlg: 'HS256' as never }, /^token_alg: /],
      [{ scopes: ['admin:read'] }, /^scopes: .*account:write/],
      [{ scopes: ['keys:create'] }, /^scopes: /],
      [{ scopes: ['openid'] }, /^scopes: need not/],
      [{ scopes: ['a b'] }, /^scopes: /],
      [{ scopes: Array.from({ length: 33 }, (_, n) => `orders:${n}`) }, /^scopes: must be at most 32 scopes/],
      [{ isPublic: true, trusted: true, redirectUris: ['http://127.0.0.1/cb'] }, /^trusted: .*asked/],
    ]
    for (const [change, message] of refusedChanges)
      await assert.rejects(
        apps.change('shop', change),
        (error: Error) => 'code' in error && error.code === 'invalid_request' && message.test(error.message),
        JSON.stringify(change),
      )
    assert.deepEqual((await apps.find('shop')).redirectUris, [])
    const publicWithLoopback = { isPublic: true, redirectUris: ['http://localhost/cb'] }
    assert.equal(
      await refusedWith(apps.change('console', publicWithLoopback)),
      'invalid_request',
      'nobody is asked before Keyway’s own apps get access',
    )
    await apps.change('shop', {
      isPublic: true,
      redirectUris: [
        'com.example.shop:/callback',
        'http://[::1]/cb',
        'http://localhost/cb?a=b',
        'https://a.example.com',
      ],
    })
  })

  test('the removal of an app ends its secrets, sessions and authorisations at once, and a later app with its id gets nothing of it', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { clock, storage } = testStorage
    const { store } = storage
    const node = await testStorage.reopen()
    const [apps, appsOfOtherNode] = [createApps(testStorage), createApps({ clock, storage: node })]
    const audience = 'https://shop.example.com'
    const { secret } = await apps.register({
      ...SHOP,
      audience,
      redirectUris: ['https://shop.example.com/cb'],
    })
    const { id: userId } = await insertUser(store)
    const grant = { scopes: ['openid'], audience: null }
    const signInSession = aSession(userId, { appId: 'shop' })
    await store.sessions.insert(signInSession)
    for (let count = 0; count < 3; count++)
      await store.sessions.insert(aSession(userId, { appId: 'shop', kind: 'app', grant }))
    await storage.transaction(tx => tx.billing.authorize(userId, 'shop', clock.now()))
    const consent = {
      id: newId(clock.now()),
      userId,
      appId: 'shop',
      scopes: ['openid'],
      grantedAt: clock.now(),
    }
    await storage.transaction(tx => tx.consents.grant(consent, clock.now()))
    clock.advance(1)

    assert.deepEqual(await appsOfOtherNode.remove('shop'), { sessions: 3, authorizations: 1, consents: 1 })
    assert.equal(await apps.authenticate('shop', secret!), null)
    assert.equal(await store.apps.findByAudience(audience), null)
    assert.ok(!(await apps.list()).some(({ id }) => id === 'shop'))
    assert.equal(
      (await store.sessions.find(signInSession.id))?.endedAt,
      null,
      'a sign-in of the person stays',
    )
    const [authorization] = await store.billing.authorizations(userId)
    assert.equal(authorization?.revokedAt, clock.now())
    const authorizeAgain = () => storage.transaction(tx => tx.billing.authorize(userId, 'shop', clock.now()))
    assert.equal(await authorizeAgain(), null)
    for (const call of [apps.remove, apps.newSecret, (id: string) => apps.change(id, { name: 'x' })])
      assert.equal(await refusedWith(call('shop')), 'not_found')

    clock.advance(1)
    const { app } = await apps.register({ ...SHOP, id: 'shop', audience })
    assert.deepEqual([app.redirectUris, app.coversFrom], [[], clock.now()])
    assert.equal(await apps.authenticate('shop', secret!), null)
    assert.equal((await store.billing.authorizations(userId))[0]?.revokedAt, clock.now() - 1)
    for (const id of ['console', 'hub']) assert.equal(await refusedWith(apps.remove(id)), 'forbidden')
  })

  test('a removal that was interrupted can be repeated', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { store } = testStorage.storage
    const apps = createApps(testStorage)
    await apps.register(SHOP)
    const { id } = await insertUser(store)
    await store.sessions.insert(
      aSession(id, { appId: 'shop', kind: 'app', grant: { scopes: [], audience: null } }),
    )
    await testStorage.storage.transaction(tx => tx.apps.remove('shop', testStorage.clock.now()))
    assert.deepEqual(await apps.remove('shop'), { sessions: 1, authorizations: 0, consents: 0 })
    assert.equal(await refusedWith(apps.remove('shop')), 'not_found')
  })

  test('a new app with the id of one whose removal was interrupted gets nothing of it', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { clock, storage } = testStorage
    const apps = createApps(testStorage)
    await apps.register(SHOP)
    const { id } = await insertUser(storage.store)
    await storage.transaction(tx => tx.billing.authorize(id, 'shop', clock.now()))
    await storage.transaction(tx => tx.apps.remove('shop', clock.now()))
    clock.advance(1)
    await apps.register(SHOP)
    const [authorization] = await storage.store.billing.authorizations(id)
    assert.equal(authorization?.revokedAt, clock.now())
  })

  test('an unregistered app cannot get a secret', async t => {
    assert.equal(
      await refusedWith(createApps(await openTestStorage(engine, t)).newSecret('shop')),
      'not_found',
    )
  })
})
