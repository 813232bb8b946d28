import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/ids.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'
import { anApp, aSigningKey, insertUser, NOW, race, readAll, winners } from './fixtures.ts'

forEachEngine(engine => {
  test('twenty nodes that start concurrently agree on one instance value and one first signing key', async t => {
    const testStorage = await openTestStorage(engine, t)
    const storedValues = await race(testStorage, (store, number) =>
      store.instance.findOrInsert('pepper', `${number}`),
    )
    assert.equal(new Set(storedValues).size, 1)
    const outcomes = await race(testStorage, store => store.signingKeys.insertFirst(aSigningKey()))
    assert.equal(winners(outcomes).length, 1)
    assert.equal((await testStorage.storage.store.signingKeys.list(NOW)).length, 1)
  })

  test('concurrent rotations leave exactly one signing key without an expiry', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { signingKeys } = testStorage.storage.store
    await signingKeys.insertFirst(aSigningKey())
    await race(testStorage, store =>
      store.signingKeys.insertNext(aSigningKey({ signsFrom: NOW + 5 }), NOW + 9),
    )
    const keys = await signingKeys.list(NOW)
    assert.equal(keys.length, 21)
    assert.equal(keys.filter(key => key.retiresAt === null).length, 1)
    assert.equal(await signingKeys.prune(NOW + 10), 20)
    assert.equal(await signingKeys.insertFirst(aSigningKey()), false)
  })

  test('four apps are registered initially, and registering an existing id changes nothing', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { apps } = storage.store
    const initialApps = (await apps.list()).map(app => [app.id, app.firstParty, app.coversFrom])
    assert.deepEqual(initialApps, [
      ['console', true, 0],
      ['hub', true, 0],
      ['keyway-cli', false, 0],
      ['service-sdk', false, 0],
    ])
    const app = anApp({ audience: 'https://shop.example' })
    assert.equal(await apps.insert(app), true)
    assert.equal(await apps.insert({ ...app, audience: null }), false)
    assert.deepEqual(await apps.findByAudience('https://shop.example'), app)
  })

  test('an app keeps only its two newest secrets', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { apps } = storage.store
    for (const [at, hash] of ['c', 'b', 'a'].entries()) await apps.addSecret('hub', hash, NOW + at)
    assert.deepEqual(await apps.secrets('hub'), ['a', 'b'])
  })

  test('endings are read in order from an instant on, without gaps or duplicates', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { endings } = storage.store
    const rows = Array.from({ length: 6 }, (_, index) => {
      const id = newId(NOW)
      return { id, kind: 'api_key' as const, subjectId: id, userId: id, at: NOW + (index >> 1) }
    }).toSorted((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
    await endings.insert(rows.toReversed())
    await endings.insert([])
    assert.deepEqual(await endings.since(NOW + 1, null, 10), rows.slice(2))
    assert.deepEqual(await endings.since(rows[2]!.at, rows[2]!.id, 2), rows.slice(3, 5))
    assert.equal(await endings.prune(NOW + 1, 10), 2)
  })

  test('connections are listed while their node is alive', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { presence } = storage.store
    const node = { id: 'node', startedAt: NOW, seenAt: NOW, version: '1', sealsEvents: true, relayVersion: 1 }
    const row = (connectionId: string) => ({
      connectionId,
      nodeId: 'node',
      userId: 'user',
      keyId: 'key',
      keyName: null,
      address: '192.0.2.1',
      client: null,
      connectedAt: NOW,
    })
    await presence.heartbeat(node)
    await presence.heartbeat({ ...node, seenAt: NOW + 5 })
    await presence.record('node', [row('a'), row('b')], [], NOW)
    await presence.record('node', [], ['b'], NOW)
    assert.deepEqual(await presence.listOf('user', NOW + 5), [row('a')])
    assert.deepEqual(await presence.nodes(NOW + 5), [{ ...node, seenAt: NOW + 5 }])
    assert.deepEqual(await presence.listOf('user', NOW + 6), [])
    assert.deepEqual(await presence.prune(NOW + 6, 10, NOW), { removed: 2, left: [row('a')] })
    await presence.heartbeat(node)
    await presence.record('node', [row('c')], [], NOW)
    await presence.deregister('node', NOW)
    assert.deepEqual(await presence.prune(NOW + 6, 10, NOW), { removed: 0, left: [] })
  })

  test('a connection that moved to another node stays listed there, whatever its old node still writes', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { presence } = storage.store
    const row = (nodeId: string, connectedAt: number) => ({
      connectionId: 'moved',
      nodeId,
      userId: 'user',
      keyId: 'key',
      keyName: null,
      address: '192.0.2.1',
      client: null,
      connectedAt,
    })
    for (const id of ['old', 'new']) {
      await presence.heartbeat({
        id,
        startedAt: NOW,
        seenAt: NOW,
        version: '1',
        sealsEvents: true,
        relayVersion: 1,
      })
    }
    await presence.record('old', [row('old', NOW)], [], NOW)
    await presence.record('new', [row('new', NOW + 1)], [], NOW)
    assert.deepEqual(await presence.listOf('user', NOW), [row('new', NOW + 1)])
    await presence.record('old', [row('old', NOW)], [], NOW)
    await presence.record('old', [], ['moved'], NOW)
    assert.deepEqual(await presence.listOf('user', NOW), [row('new', NOW + 1)])
  })

  test('of two nodes that record a user concurrently at least one reads the other', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { locations, presence } = storage.store
    const users = Array.from({ length: 120 }, (_, n) => `user-${n}`)
    const [nodesSeenByA, nodesSeenByB] = await Promise.all([
      locations.enter('a', users),
      locations.enter('b', users),
    ])
    for (const user of users) {
      assert.ok(nodesSeenByA!.get(user)!.includes('a') && nodesSeenByB!.get(user)!.includes('b'))
      assert.ok(nodesSeenByA!.get(user)!.includes('b') || nodesSeenByB!.get(user)!.includes('a'), user)
    }
    assert.deepEqual((await locations.nodesOf('user-7')).sort(), ['a', 'b'])
    await locations.enter('a', ['user-7']) // A repeated entry changes nothing.
    await locations.leave('b', ['user-7', 'unknown'])
    assert.deepEqual(await locations.nodesOf('user-7'), ['a'])
    assert.deepEqual(await locations.nodesOf('unknown'), [])
    const node = { id: 'a', startedAt: NOW, seenAt: NOW, version: '1', sealsEvents: true, relayVersion: 1 }
    await presence.heartbeat(node)
    assert.equal((await presence.prune(NOW, 100, NOW)).removed, 100, 'in batches')
    assert.equal((await presence.prune(NOW, 100, NOW)).removed, 19)
    assert.deepEqual(await locations.nodesOf('user-8'), ['a'], 'locations of nodes without a row are pruned')
  })

  test('security events are paged newest first, each once', async t => {
    const { storage } = await openTestStorage(engine, t)
    const { id: userId } = await insertUser(storage.store)
    const event = () => ({
      id: newId(NOW),
      userId,
      type: 'sign_in' as const,
      at: NOW,
      network: '192.0.2.0/24',
      client: null,
      keyId: null,
      sessionId: null,
    })
    const events = [event(), event(), event()]
    for (const one of events) await storage.store.securityEvents.insert(one)
    const allEvents = await readAll(page => storage.store.securityEvents.list(userId, page))
    assert.deepEqual(new Set(allEvents.map(one => one.id)), new Set(events.map(one => one.id)))
    assert.equal(allEvents.length, 3)
    assert.equal(await storage.store.securityEvents.prune(NOW + 1, 2), 2)
  })
})
