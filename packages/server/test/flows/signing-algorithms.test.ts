import assert from 'node:assert/strict'
import { createHmac, createPublicKey } from 'node:crypto'
import { test } from 'node:test'
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { BY_COMMAND_LINE, createAudit } from '../../src/audit/audit.ts'
import { createLog } from '../../src/log.ts'
import { newKeyPair, openKeyPair } from '../../src/signing-keys/algorithms.ts'
import { createJwt } from '../../src/signing-keys/jwt.ts'
import { createSigner } from '../../src/signing-keys/signer.ts'
import { SIGNING_ALGS, type SigningAlg } from '../../src/signing-keys/signing-key.ts'
import { createSigningKeys, PUBLISHED_BEFORE_USE } from '../../src/signing-keys/signing-keys.ts'
import type { Storage } from '../../src/store.ts'
import { altered } from '../support/altered.ts'
import { forEachEngine, openTestStorage, type TestStorage } from '../support/engines.ts'
import { caller, openServices, PUBLIC_URL } from '../support/services.ts'

const EXPECTED_CLAIMS = { typ: 'at+jwt', audience: 'shop' } as const

function nodeOn(testStorage: TestStorage, storage: Storage = testStorage.storage) {
  const keys = createSigningKeys({
    ...testStorage,
    storage,
    audit: createAudit({ ...testStorage, storage }),
    longestTokenSeconds: 900,
  })
  const jwt = createJwt({
    signingKeys: keys,
    signer: createSigner(createLog('silent')),
    clock: testStorage.clock,
    issuer: PUBLIC_URL,
  })
  const claims = () => {
    const iat = Math.floor(testStorage.clock.now() / 1000)
    return { type: 'access', iss: PUBLIC_URL, aud: 'shop', sub: 's', iat, exp: iat + 900, jti: 'j' }
  }
  return { keys, jwt, claims, issue: (alg: SigningAlg) => jwt.signAs(alg, 'at+jwt', claims()) }
}

async function twoNodes(...[engine, t]: Parameters<typeof openTestStorage>) {
  const testStorage = await openTestStorage(engine, t)
  const [nodeA, nodeB] = [nodeOn(testStorage), nodeOn(testStorage, await testStorage.reopen())]
  await Promise.all([nodeA.keys.load(), nodeB.keys.load()])
  return { testStorage, nodeA, nodeB }
}

const algorithmsOf = ({ keys }: ReturnType<typeof nodeOn>) => keys.jwks().keys.map(({ alg }) => alg)

test('a private key is opened only with its own public key, whatever its algorithm', async () => {
  for (const alg of SIGNING_ALGS) {
    const [{ publicKey, privateKey }, other] = [await newKeyPair(alg), await newKeyPair(alg)]
    assert.equal(openKeyPair({ id: 'one', alg, publicKey }, privateKey)?.kid, 'one')
    assert.equal(openKeyPair({ id: 'one', alg, publicKey }, other.privateKey), null, alg)
  }
})

forEachEngine(engine => {
  test('only the first token of an algorithm reads the stored keys', async t => {
    const { testStorage, nodeA } = await twoNodes(engine, t)
    const list = t.mock.method(testStorage.storage.store.signingKeys, 'list')
    await nodeA.issue('ES256')
    const firstReads = list.mock.callCount()
    assert.ok(firstReads > 0)
    await nodeA.issue('ES256')
    assert.equal(list.mock.callCount(), firstReads)
  })

  test('a token of each algorithm verifies with jose by the published key, and on every node', async t => {
    const { testStorage, nodeA, nodeB } = await twoNodes(engine, t)
    for (const alg of SIGNING_ALGS) {
      const token = await nodeA.issue(alg)
      const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(nodeA.keys.jwks()), {
        algorithms: [alg],
        issuer: PUBLIC_URL,
        audience: 'shop',
        currentDate: new Date(testStorage.clock.now()),
      })
      assert.deepEqual([protectedHeader.alg, protectedHeader.typ, payload.sub], [alg, 'at+jwt', 's'])
      assert.ok(await nodeA.jwt.verify(token, EXPECTED_CLAIMS))
      testStorage.clock.advance(1000) // a node reads unknown keys at most once a second
      assert.ok(await nodeB.jwt.verify(token, EXPECTED_CLAIMS), alg)
    }
  })

  test('a service has only the keys of the algorithms that were asked for, each without its private half', async t => {
    const { nodeA } = await twoNodes(engine, t)
    assert.deepEqual(algorithmsOf(nodeA), ['EdDSA'])
    await nodeA.issue('ES256')
    assert.deepEqual(algorithmsOf(nodeA), ['EdDSA', 'ES256'])
    await nodeA.issue('RS256')
    const members = nodeA.keys.jwks().keys.map(key => Object.keys(key).sort().join())
    assert.deepEqual(members, ['alg,crv,kid,kty,use,x', 'alg,crv,kid,kty,use,x,y', 'alg,e,kid,kty,n,use'])
    const rsaKey = nodeA.keys.jwks().keys.find(({ alg }) => alg === 'RS256')
    assert.ok(rsaKey?.alg === 'RS256' && Buffer.from(rsaKey.n, 'base64url').length === 3072 / 8)
  })

  test('two nodes that need the first key of an algorithm at once agree on one', async t => {
    const { testStorage, nodeA, nodeB } = await twoNodes(engine, t)
    for (const alg of ['ES256', 'RS256'] as const) {
      const [a, b] = await Promise.all([
        nodeA.issue(alg),
        nodeB.issue(alg),
        nodeA.issue(alg),
        nodeB.issue(alg),
      ])
      assert.equal(decodeProtectedHeader(a!).kid, decodeProtectedHeader(b!).kid)
      assert.equal(algorithmsOf(nodeA).filter(each => each === alg).length, 1)
      const storedKeys = await testStorage.storage.store.signingKeys.list(testStorage.clock.now())
      assert.equal(storedKeys.filter(key => key.alg === alg).length, 1)
    }
  })

  test('the first key of an algorithm is announced to other nodes, once', async t => {
    const { testStorage, nodeA } = await twoNodes(engine, t)
    let changeEventCount = 0
    const lastEvent = Promise.withResolvers<void>()
    testStorage.storage.events.subscribe(({ type }) => {
      if (type === 'signing_keys.changed') changeEventCount++
      if (type === 'mail.queued') lastEvent.resolve()
    })
    await nodeA.issue('ES256')
    await nodeA.issue('ES256')
    // Events arrive in the order of the commits: once this one has arrived, all earlier ones have.
    await testStorage.storage.events.publish({ type: 'mail.queued' })
    await lastEvent.promise
    assert.equal(changeEventCount, 1)
  })

  test('the keys of all algorithms rotate together, and old tokens verify meanwhile', async t => {
    const { testStorage, nodeA, nodeB } = await twoNodes(engine, t)
    const tokensBefore = await Promise.all(SIGNING_ALGS.map(nodeA.issue))
    const rotation = await nodeA.keys.rotate(BY_COMMAND_LINE)
    assert.deepEqual(rotation.keys.map(({ alg }) => alg).sort(), ['ES256', 'EdDSA', 'RS256'])
    assert.equal(rotation.signsFrom, testStorage.clock.now() + PUBLISHED_BEFORE_USE)
    assert.equal(algorithmsOf(nodeA).length, 6)
    for (const alg of SIGNING_ALGS)
      assert.ok(!rotation.keys.some(({ kid }) => kid === decodeProtectedHeader(tokensBefore[0]!).kid), alg)
    testStorage.clock.set(rotation.signsFrom)
    await nodeB.keys.reload()
    for (const [at, alg] of SIGNING_ALGS.entries()) {
      const token = await nodeB.issue(alg)
      const { kid } = decodeProtectedHeader(token)
      assert.equal(rotation.keys.find(key => key.alg === alg)?.kid, kid)
      assert.ok(await nodeA.jwt.verify(token, EXPECTED_CLAIMS))
      assert.ok(await nodeB.jwt.verify(tokensBefore[at]!, EXPECTED_CLAIMS))
    }
    testStorage.clock.advance(900_000 + 60_000)
    assert.equal(algorithmsOf(nodeA).length, 3)
  })

  test('concurrent rotations leave one key of each algorithm that does not retire', async t => {
    const { testStorage, nodeA, nodeB } = await twoNodes(engine, t)
    await nodeA.issue('ES256')
    await Promise.all([
      nodeA.keys.rotate(BY_COMMAND_LINE),
      nodeB.keys.rotate(BY_COMMAND_LINE),
      nodeA.keys.rotate(BY_COMMAND_LINE),
    ])
    const storedKeys = await testStorage.storage.store.signingKeys.list(testStorage.clock.now())
    const unretiredKeys = storedKeys.filter(({ retiresAt }) => retiresAt === null)
    assert.deepEqual(unretiredKeys.map(({ alg }) => alg).sort(), ['ES256', 'EdDSA'])
  })

  test('a key verifies its own algorithm only, whatever the header says', async t => {
    const { testStorage, nodeA } = await twoNodes(engine, t)
    const tokens = Object.fromEntries(
      await Promise.all(SIGNING_ALGS.map(async alg => [alg, await nodeA.issue(alg)] as const)),
    )
    const otherNode = nodeOn(testStorage)
    await otherNode.keys.load()
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const key of nodeA.keys.jwks().keys) {
      const [, payload, signature] = tokens[key.alg]!.split('.') as [string, string, string]
      const otherAlgorithms = ['EdDSA', 'ES256', 'RS256', 'PS256', 'RS512', 'ES384', 'HS256', 'none'].filter(
        alg => alg !== key.alg,
      )
      for (const alg of otherAlgorithms) {
        const header = encode({ alg, typ: 'at+jwt', kid: key.kid })
        const pem = createPublicKey({ key: key as never, format: 'jwk' }).export({
          format: 'pem',
          type: 'spki',
        })
        const hmac = createHmac('sha256', pem).update(`${header}.${payload}`).digest('base64url')
        for (const forged of [signature, hmac, ''])
          assert.equal(
            await otherNode.jwt.verify(`${header}.${payload}.${forged}`, EXPECTED_CLAIMS),
            null,
            alg,
          )
      }
      // A token that names one key in its header, but is signed with another.
      for (const other of nodeA.keys.jwks().keys.filter(({ kid }) => kid !== key.kid)) {
        const header = encode({ alg: other.alg, typ: 'at+jwt', kid: other.kid })
        assert.equal(await otherNode.jwt.verify(`${header}.${payload}.${signature}`, EXPECTED_CLAIMS), null)
      }
      const alteredToken = altered(tokens[key.alg]!)
      assert.equal(await otherNode.jwt.verify(alteredToken, EXPECTED_CLAIMS), null)
      assert.ok(await otherNode.jwt.verify(tokens[key.alg]!, EXPECTED_CLAIMS))
    }
  })

  test('an agent token for an app’s audience is signed with the app’s algorithm, one for the hub with EdDSA', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('ada@example.com')
    const newKey = { name: null, scopes: null, expiresAt: null, appId: 'es256', allowedNetworks: [] }
    const { key } = await services.apiKeys.create(user.id, newKey, caller())
    for (const tokenAlg of SIGNING_ALGS) {
      const id = tokenAlg.toLowerCase()
      const audience = `https://${id}.example.com`
      await services.apps.register({ id, name: id, audience, tokenAlg })
      const publishedKeys = services.signingKeys.jwks()
      assert.ok(
        publishedKeys.keys.some(({ alg }) => alg === tokenAlg),
        'published before its first use',
      )
      const { token } = await services.agentTokens.exchange(key, audience, caller())
      const { protectedHeader } = await jwtVerify(token, createLocalJWKSet(publishedKeys), {
        audience,
        currentDate: new Date(services.clock.now()),
      })
      assert.deepEqual([protectedHeader.alg, protectedHeader.typ], [tokenAlg, 'agent_ws'])
      assert.equal((await services.agentTokens.verify(token, audience))?.agentId, user.id)
      assert.equal(await services.agentTokens.verify(token), null)
      assert.equal((await introspect(token)).active, true)
    }
    const { token } = await services.agentTokens.exchange(key, undefined, caller())
    assert.equal(decodeProtectedHeader(token).alg, 'EdDSA')

    async function introspect(text: string) {
      const { createIntrospection } = await import('../../src/introspection/introspection.ts')
      return createIntrospection(services).introspect(text)
    }
  })
})
