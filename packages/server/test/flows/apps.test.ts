import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApps, type NewApp } from '../../src/apps/apps.ts'
import { aKey, aSession, insertUser } from '../contract/fixtures.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { race, refusedWith } from '../support/services.ts'

const SHOP: NewApp = { id: 'shop', name: 'Shop', audience: null, verifyUrl: null }

forEachEngine(engine => {
  test('three apps exist initially, two of them first-party', async t => {
    const apps = await createApps(await openTestStorage(engine, t)).list()
    const named = apps.map(({ id, firstParty }) => `${id} ${firstParty}`).sort()
    assert.deepEqual(named, ['console true', 'hub true', 'service-sdk false'])
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
    const wrong: Partial<NewApp>[] = [
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
    for (const change of wrong) {
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

  test('only the two newest secrets of an app are accepted, and only for that app', async t => {
    const opened = await openTestStorage(engine, t)
    const apps = createApps(opened)
    await apps.register(SHOP)
    const secrets: string[] = []
    for (let index = 0; index < 3; index++) {
      secrets.push(await apps.newSecret('shop'))
      opened.clock.advance(1)
    }
    for (const secret of secrets) assert.match(secret, /^sva_[A-Za-z0-9_-]{43}$/)
    const accepted = await Promise.all(
      secrets.map(async secret => (await apps.authenticate('shop', secret))?.id),
    )
    assert.deepEqual(accepted, [undefined, 'shop', 'shop'])
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
    const stored = await opened.storage.store.apps.secrets('shop')
    assert.ok(!stored.some(hash => secrets.includes(hash)))
  })

  test('an app covers older keys and sessions with its id only if it adopts them, and their number is returned', async t => {
    const opened = await openTestStorage(engine, t)
    const { clock } = opened
    const { store } = opened.storage
    const { id } = await insertUser(store)
    const now = clock.now()
    const past = { appId: 'shop', createdAt: now - 10, expiresAt: null, revokedAt: null }
    await store.apiKeys.insert(aKey(id, past))
    await store.apiKeys.insert(aKey(id, { ...past, expiresAt: now + 1 }))
    await store.apiKeys.insert(aKey(id, { ...past, expiresAt: now }))
    await store.apiKeys.insert(aKey(id, { ...past, revokedAt: now }))
    await store.apiKeys.insert(aKey(id, { ...past, createdAt: now }))
    await store.apiKeys.insert(aKey(id, { ...past, appId: 'shop2' }))
    const session = { appId: 'shop', createdAt: now - 10, expiresAt: now + 1 }
    await store.sessions.insert(aSession(id, session))
    await store.sessions.insert(aSession(id, { ...session, expiresAt: now }))
    await store.sessions.insert(aSession(id, { ...session, endedAt: now, endedBy: 'logout' }))

    const apps = createApps(opened)
    const refused = await apps.register(SHOP)
    assert.deepEqual(refused.older, { keys: 2, sessions: 1 })
    assert.equal(refused.app.coversFrom, now)
    const adopted = await apps.register({ ...SHOP, id: 'shop2', adopt: true })
    assert.deepEqual(adopted.older, { keys: 1, sessions: 0 })
    assert.equal(adopted.app.coversFrom, 0)
    assert.deepEqual(
      (await store.apps.list()).map(app => [app.id, app.coversFrom]),
      [
        ['console', 0],
        ['hub', 0],
        ['service-sdk', 0],
        ['shop', now],
        ['shop2', 0],
      ],
    )
  })

  test('an app registered by a node of the previous version covers keys and sessions created after its registration', async t => {
    const opened = await openTestStorage(engine, t)
    await createApps(opened).register({ ...SHOP, adopt: true })
    await opened.storage.engine.connection.execute('update apps set covers_from = null', [])
    const app = await opened.storage.store.apps.find('shop')
    assert.equal(app?.coversFrom, app?.createdAt)
  })

  test('an unregistered app cannot get a secret', async t => {
    assert.equal(
      await refusedWith(createApps(await openTestStorage(engine, t)).newSecret('shop')),
      'not_found',
    )
  })
})
