import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MAX_METADATA_BYTES, MAX_METADATA_DEPTH } from '../../src/api-keys/metadata.ts'
import { DAY } from '../../src/clock.ts'
import { createHousekeeping, RETENTION } from '../../src/operations/housekeeping.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'

async function openWithAda(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t)
  const { tokens } = await server.signIn('ada@example.com')
  const token = tokens.accessToken
  const createKey = (body: object) => {
    // Keys of the same millisecond have no order.
    server.clock.advance(1)
    return server.post('/v1/api-keys', body, { token })
  }
  const updateKey = (id: string, body: unknown) => server.call('PATCH', `/v1/api-keys/${id}`, { token, body })
  const list = async (query: string) => (await server.get(`/v1/api-keys?${query}`, { token })).body
  return { server, token, createKey, updateKey, list }
}

/** Metadata whose stored form has exactly this many bytes. */
function metadataOfSize(bytes: number): { text: string } {
  return { text: 'x'.repeat(bytes - JSON.stringify({ text: '' }).length) }
}

function nestedObject(levels: number): object {
  return levels === 1 ? {} : { in: nestedObject(levels - 1) }
}

function introspectAs(server: Awaited<ReturnType<typeof openServer>>, id: string, secret: string) {
  const headers = { Authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` }
  return async (token: string) => (await server.post('/auth/introspect', { token }, { headers })).body
}

forEachEngine(engine => {
  test('every response with a key object has its metadata and external id as they were sent', async t => {
    const { server, token, createKey, updateKey, list } = await openWithAda(engine, t)
    const metadata = { plan: 'pro', seats: 3, ratio: 0.1, ü: [null, true, { __proto__x: '🔑' }] }
    const creationAnswer = await createKey({ external_id: 'customer-42', metadata })
    assert.equal(creationAnswer.status, 201)
    const { id } = creationAnswer.body
    const storedData = (body: Record<string, unknown>) => [body.external_id, body.metadata]
    assert.deepEqual(storedData(creationAnswer.body), ['customer-42', metadata])
    assert.deepEqual(storedData((await server.get(`/v1/api-keys/${id}`, { token })).body), [
      'customer-42',
      metadata,
    ])
    assert.deepEqual(storedData((await list('limit=10')).data[0]), ['customer-42', metadata])
    assert.deepEqual(storedData((await updateKey(id, { name: 'Laptop' })).body), ['customer-42', metadata])
    const rotationAnswer = await server.post(`/v1/api-keys/${id}/rotate`, {}, { token })
    assert.deepEqual(storedData(rotationAnswer.body), ['customer-42', metadata])
    const revocationAnswer = await server.call('DELETE', `/v1/api-keys/${id}`, { token })
    assert.deepEqual(storedData(revocationAnswer.body), ['customer-42', metadata])
    assert.deepEqual(storedData((await createKey({})).body), [null, null])
  })

  test('metadata may have a member named __proto__', async t => {
    const { server, token } = await openWithAda(engine, t)
    const body = '{"metadata":{"__proto__":{"admin":true},"plan":"pro"}}'
    const creationAnswer = await server.post('/v1/api-keys', body, { token })
    assert.match(creationAnswer.text, /"metadata":\{"__proto__":\{"admin":true\},"plan":"pro"\}/)
    assert.match(
      (await server.get(`/v1/api-keys/${creationAnswer.body.id}`, { token })).text,
      /"__proto__":\{"admin":true\}/,
    )
  })

  test('a change replaces metadata as a whole; null or an empty value removes metadata or external id', async t => {
    const { createKey, updateKey } = await openWithAda(engine, t)
    for (const nothing of [
      { external_id: null, metadata: null },
      { external_id: '', metadata: {} },
    ]) {
      const { id } = (await createKey({ external_id: 'a', metadata: { a: 1, b: 2 } })).body
      const replacementAnswer = await updateKey(id, { metadata: { c: 3 } })
      assert.deepEqual([replacementAnswer.body.external_id, replacementAnswer.body.metadata], ['a', { c: 3 }])
      const removalAnswer = await updateKey(id, nothing)
      assert.deepEqual([removalAnswer.body.external_id, removalAnswer.body.metadata], [null, null])
    }
  })

  test('metadata are limited to 16 KiB as stored, to a body of 32 KiB with their escapes, and to 32 levels', async t => {
    const { server, token, createKey, updateKey } = await openWithAda(engine, t)
    assert.equal((await createKey({ metadata: metadataOfSize(MAX_METADATA_BYTES) })).status, 201)
    const tooLargeAnswer = await createKey({ metadata: metadataOfSize(MAX_METADATA_BYTES + 1) })
    assert.deepEqual([tooLargeAnswer.status, tooLargeAnswer.body.errors[0].field], [400, 'metadata'])
    const escapedBody = `{"metadata":{"text":"${'\\u00e9'.repeat(5_000)}"}}`
    assert.equal(
      (await server.post('/v1/api-keys', escapedBody, { token })).body.metadata.text,
      'é'.repeat(5_000),
    )
    // A body of the maximum size, with 5,456 escapes that are stored as two bytes each, and a body of one byte more.
    const bodyOf = (length: number, escapes: string) => {
      const body = `{"metadata":{"text":"${escapes}"}}`
      return body + ' '.repeat(length - body.length)
    }
    const largestBody = bodyOf(32_768, '\\u00e9'.repeat(5_456))
    assert.equal((await server.post('/v1/api-keys', largestBody, { token })).status, 201)
    assert.equal(
      (await server.post('/v1/api-keys', `${largestBody} `, { token })).body.code,
      'payload_too_large',
    )
    const cyrillic = 'ж'.repeat((MAX_METADATA_BYTES - JSON.stringify({ text: '' }).length) / 2)
    assert.equal((await createKey({ metadata: { text: cyrillic } })).status, 201, 'in UTF-8')
    const values = { list: Array.from({ length: 8_000 }, () => 0) }
    const { id } = (await createKey({ metadata: values })).body
    assert.equal((await updateKey(id, { metadata: nestedObject(MAX_METADATA_DEPTH) })).status, 200)
    assert.equal(
      (await updateKey(id, { metadata: nestedObject(MAX_METADATA_DEPTH + 1) })).body.code,
      'invalid_request',
    )
    assert.equal((await createKey({ name: metadataOfSize(33 * 1024).text })).status, 413)
  })

  test('metadata that could not be returned unchanged are refused', async t => {
    const { server, token, createKey } = await openWithAda(engine, t)
    const statusOfCreate = (metadata: string) =>
      server.post('/v1/api-keys', `{"metadata":${metadata}}`, { token }).then(answer => answer.status)
    for (const metadata of [
      '{"n":9007199254740993}',
      '{"n":1e400}',
      '{"s":"\\u0000"}',
      '{"\\u0000":1}',
      '{"s":"\\ud800"}',
      '[]',
      '"text"',
      '1',
    ])
      assert.equal(await statusOfCreate(metadata), 400, metadata)
    for (const metadata of ['{"n":9007199254740991}', '{"n":-1.5e-300}', '{"":""}', 'null', '{}'])
      assert.equal(await statusOfCreate(metadata), 201, metadata)
    for (const external_id of ['x'.repeat(129), 'a\u0000b', 'a\nb', 7])
      assert.equal((await createKey({ external_id })).status, 400)
    assert.equal((await createKey({ external_id: '🔑'.repeat(128) })).status, 201)
    assert.equal(
      (await createKey({ externalid: 'x' })).body.errors[0].message.includes('"external_id"'),
      true,
    )
  })

  test('external_id filters the list of the user’s own keys, also with a status and in pages', async t => {
    const { server, createKey, list } = await openWithAda(engine, t)
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.unshift((await createKey({ external_id: 'customer 42/ü' })).body.id)
    await createKey({ external_id: 'another' })
    await createKey({})
    const eve = await server.signIn('eve@example.com')
    await server.createKey(eve.tokens.accessToken, { external_id: 'customer 42/ü' })
    await server.apiKeys.revokeById(ids[1]!)
    const query = `external_id=${encodeURIComponent('customer 42/ü')}`
    const idsOf = (answer: { data: { id: string }[] }) => answer.data.map(({ id }) => id)
    assert.deepEqual(idsOf(await list(query)), ids)
    assert.deepEqual(
      idsOf(await list(`${query}&status=active`)),
      ids.filter(id => id !== ids[1]),
    )
    assert.deepEqual(idsOf(await list(`${query}&status=revoked`)), [ids[1]])
    assert.deepEqual(idsOf(await list(`${query}&status=expired`)), [])
    const firstPage = await list(`${query}&limit=3`)
    const secondPage = await list(`${query}&limit=3&cursor=${firstPage.next_cursor}`)
    assert.deepEqual([...idsOf(firstPage), ...idsOf(secondPage)], ids)
    assert.deepEqual((await list('external_id=nothing')).data, [])
    assert.equal((await list(`external_id=${'x'.repeat(129)}`)).code, 'invalid_request')
    assert.equal((await list('external_id=%00')).code, 'invalid_request')
  })

  test('a page ends before its metadata exceed 256 KiB, and the next page continues', async t => {
    const { createKey, list } = await openWithAda(engine, t)
    const ids: string[] = []
    for (let n = 0; n < 20; n++)
      ids.unshift((await createKey({ metadata: metadataOfSize(MAX_METADATA_BYTES) })).body.id)
    const firstPage = await list('limit=100')
    assert.deepEqual([firstPage.data.length, firstPage.has_more], [16, true])
    const secondPage = await list(`limit=100&cursor=${firstPage.next_cursor}`)
    assert.deepEqual([secondPage.data.length, secondPage.has_more], [4, false])
    assert.deepEqual(
      [...firstPage.data, ...secondPage.data].map(({ id }: { id: string }) => id),
      ids,
    )
  })

  test('introspection of a key or its agent token shows metadata only to the app of the key and first-party apps', async t => {
    const { server, createKey } = await openWithAda(engine, t)
    const keyBeforeRegistration = (await createKey({ app_id: 'shop', external_id: 'early' })).body
    server.clock.advance(1)
    const introspectAsShop = introspectAs(server, 'shop', await server.registerApp('shop'))
    const introspectAsOtherApp = introspectAs(server, 'other', await server.registerApp('other'))
    const introspectAsFirstParty = introspectAs(server, 'hub', (await server.apps.newSecret('hub')).secret)
    const { key } = (await createKey({ app_id: 'shop', external_id: 'customer', metadata: { plan: 'pro' } }))
      .body
    const { token } = (await server.post('/auth/agent-token', { api_key: key })).body
    for (const credential of [key, token]) {
      for (const ask of [introspectAsShop, introspectAsFirstParty]) {
        const { external_id, metadata } = await ask(credential)
        assert.deepEqual({ external_id, metadata }, { external_id: 'customer', metadata: { plan: 'pro' } })
      }
      const answer = await introspectAsOtherApp(credential)
      assert.equal(answer.active, true)
      assert.equal('external_id' in answer || 'metadata' in answer, false)
    }
    // The key was created with the `app_id` "shop" before that app was registered, so the app has no rights over it.
    assert.equal('external_id' in (await introspectAsShop(keyBeforeRegistration.key)), false)
    const keyWithoutMetadata = await introspectAsShop((await createKey({ app_id: 'shop' })).body.key)
    assert.deepEqual([keyWithoutMetadata.external_id, keyWithoutMetadata.metadata], [null, null])
  })

  test('metadata of a key that ended are removed after a week, and the external id stays', async t => {
    const { server, createKey } = await openWithAda(engine, t)
    const { clock } = server
    const storedData = { external_id: 'a', metadata: { a: 1 } }
    const idOfNewKey = async (body: object) => (await createKey({ ...storedData, ...body })).body.id as string
    const [kept, revoked] = [await idOfNewKey({}), await idOfNewKey({})]
    const expires_at = new Date(clock.now() + 1 + DAY).toISOString()
    const expiredId = await idOfNewKey({ expires_at })
    clock.advance(DAY)
    await server.apiKeys.revokeById(revoked)
    const housekeeping = createHousekeeping(server)
    const { user } = await server.signIn('ada@example.com')
    const listIdsWithMetadata = async () => {
      const { rows } = await server.apiKeys.list(user.id, null, { limit: 10, after: null })
      return [...(await server.apiKeys.metadataOf(rows)).keys()].sort()
    }
    clock.advance(RETENTION.metadataOfEndedKeys)
    await housekeeping.run()
    assert.deepEqual(await listIdsWithMetadata(), [kept, expiredId, revoked].sort())
    clock.advance(1)
    await housekeeping.run()
    assert.deepEqual(await listIdsWithMetadata(), [kept])
    assert.equal((await server.apiKeys.get(user.id, revoked)).externalId, 'a')
  })
})
