import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { BY_COMMAND_LINE, createAudit } from '../../src/audit/audit.ts'
import { SECOND } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { resealAll } from '../../src/operations/reseal.ts'
import { RELOAD_INTERVAL } from '../../src/reloading.ts'
import { createSecrets, SealError } from '../../src/secrets.ts'
import { keyPairOf, SEED_BYTES } from '../../src/signing-keys/ed25519.ts'
import { createJwt } from '../../src/signing-keys/jwt.ts'
import { createSigner } from '../../src/signing-keys/signer.ts'
import type { SigningKey } from '../../src/signing-keys/signing-key.ts'
import {
  createSigningKeys,
  JWKS_MAX_AGE_SECONDS,
  PUBLISHED_BEFORE_USE,
  RETIREMENT_LEEWAY,
} from '../../src/signing-keys/signing-keys.ts'
import { createSealedStore } from '../../src/storage/reseal.ts'
import type { Storage } from '../../src/store.ts'
import { type EngineName, forEachEngine, openTestStorage, type TestStorage } from '../support/engines.ts'

const LONGEST_TOKEN_SECONDS = 900
const ISSUER = 'https://keyway.test'
const EXPECTED_CLAIMS = { typ: 'agent_ws', audience: 'hub' } as const

function nodeOn(testStorage: TestStorage, storage: Storage = testStorage.storage) {
  const keys = createSigningKeys({
    ...testStorage,
    storage,
    audit: createAudit({ ...testStorage, storage }),
    longestTokenSeconds: LONGEST_TOKEN_SECONDS,
  })
  const jwt = createJwt({
    signingKeys: keys,
    signer: createSigner(createLog('silent')),
    clock: testStorage.clock,
    issuer: ISSUER,
  })
  const issue = () => {
    const iat = Math.floor(testStorage.clock.now() / 1000)
    const claims = {
      type: 'agent_ws',
      iss: ISSUER,
      aud: 'hub',
      sub: 's',
      iat,
      exp: iat + LONGEST_TOKEN_SECONDS,
      jti: 'j',
    }
    return jwt.sign('agent_ws', claims)
  }
  const accepts = async (token: string) => (await jwt.verify(token, EXPECTED_CLAIMS)) !== null
  return { ...keys, issue, accepts }
}

async function openTwoNodes(engine: EngineName, t: Parameters<typeof openTestStorage>[1]) {
  const testStorage = await openTestStorage(engine, t)
  const nodeA = nodeOn(testStorage)
  const nodeB = nodeOn(testStorage, await testStorage.reopen())
  await Promise.all([nodeA.load(), nodeB.load()])
  return { testStorage, nodeA, nodeB }
}

const kidsOf = (node: { jwks(): { keys: { kid: string }[] } }) => node.jwks().keys.map(({ kid }) => kid)

test('a new key is published and known to all nodes before it signs', () => {
  assert.ok(JWKS_MAX_AGE_SECONDS * SECOND + RELOAD_INTERVAL < PUBLISHED_BEFORE_USE)
  assert.deepEqual(
    [JWKS_MAX_AGE_SECONDS, RELOAD_INTERVAL, PUBLISHED_BEFORE_USE, RETIREMENT_LEEWAY],
    [30, 10_000, 60_000, 60_000],
  )
})

forEachEngine(engine => {
  test('two nodes that start concurrently on an empty database agree on one key', async t => {
    const { nodeA, nodeB } = await openTwoNodes(engine, t)
    assert.deepEqual(nodeA.jwks(), nodeB.jwks())
    assert.equal(kidsOf(nodeA).length, 1)
    assert.ok(await nodeB.accepts(nodeA.issue()))
  })

  test('a node keeps the signing keys that it has opened when they are sealed anew with a secret that it lacks', async t => {
    const { testStorage, nodeA, nodeB } = await openTwoNodes(engine, t)
    const newSecrets = createSecrets([randomBytes(32), ...testStorage.config.secrets])
    const { resealed } = await resealAll(createSealedStore(testStorage.storage.engine), newSecrets)
    assert.equal(resealed, 1)
    await nodeA.reload()
    assert.ok(await nodeB.accepts(nodeA.issue()))
  })

  test('signing keys survive a restart', async t => {
    const testStorage = await openTestStorage(engine, t)
    const firstStart = nodeOn(testStorage)
    await firstStart.load()
    const token = firstStart.issue()
    const restartedNode = nodeOn(testStorage)
    await restartedNode.load()
    assert.ok(await restartedNode.accepts(token))
    assert.equal(restartedNode.current().kid, firstStart.current().kid)
  })

  test('JWT-11: the key set contains only public keys', async t => {
    const { nodeA } = await openTwoNodes(engine, t)
    const [key] = nodeA.jwks().keys
    assert.deepEqual(Object.keys(key!).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x'])
    assert.ok(key?.alg === 'EdDSA')
    assert.deepEqual([key.kty, key.crv, key.use], ['OKP', 'Ed25519', 'sig'])
  })

  test('stored keys that no secret opens stop the start, and no new key is created', async t => {
    const testStorage = await openTestStorage(engine, t)
    await nodeOn(testStorage).load()
    const nodeWithOtherSecret = nodeOn({ ...testStorage, secrets: createSecrets([randomBytes(32)]) })
    await assert.rejects(nodeWithOtherSecret.load(), SealError)
    assert.equal((await testStorage.storage.store.signingKeys.list(0)).length, 1)
  })

  test('JWT-10: a new key is published at once, signs a minute later, and all tokens verify meanwhile', async t => {
    const { testStorage, nodeA, nodeB } = await openTwoNodes(engine, t)
    const oldKid = nodeA.current().kid
    const { kid, signsFrom } = await nodeA.rotate(BY_COMMAND_LINE)
    assert.equal(signsFrom, testStorage.clock.now() + PUBLISHED_BEFORE_USE)
    assert.deepEqual(kidsOf(nodeA), [oldKid, kid])
    await nodeB.reload()
    assert.deepEqual(kidsOf(nodeB), [oldKid, kid])
    testStorage.clock.set(signsFrom - 1)
    assert.equal(nodeA.current().kid, oldKid)
    const lastTokenOfOldKey = nodeA.issue()
    testStorage.clock.set(signsFrom)
    assert.equal(nodeA.current().kid, kid)
    assert.ok(await nodeB.accepts(nodeA.issue()))
    assert.ok(await nodeB.accepts(lastTokenOfOldKey))
  })

  test('an old key is published until all tokens that it signed have expired, and refused after that', async t => {
    const { testStorage, nodeA } = await openTwoNodes(engine, t)
    const oldKid = nodeA.current().kid
    const { kid, signsFrom } = await nodeA.rotate(BY_COMMAND_LINE)
    const retiresAt = signsFrom + LONGEST_TOKEN_SECONDS * SECOND + RETIREMENT_LEEWAY
    testStorage.clock.set(retiresAt - 1)
    assert.deepEqual(kidsOf(nodeA), [oldKid, kid])
    assert.ok(await nodeA.find(oldKid))
    testStorage.clock.set(retiresAt)
    assert.deepEqual(kidsOf(nodeA), [kid])
    assert.equal(await nodeA.find(oldKid), null)
  })

  test('a node that missed the event of a new key loads it when it receives a token signed with it', async t => {
    const { testStorage, nodeA, nodeB } = await openTwoNodes(engine, t)
    const { kid, signsFrom } = await nodeA.rotate(BY_COMMAND_LINE)
    testStorage.clock.set(signsFrom)
    const token = nodeA.issue()
    assert.ok(!kidsOf(nodeB).includes(kid))
    assert.ok(await nodeB.accepts(token))
  })

  test('unknown key ids cause at most one read a second', async t => {
    const { testStorage, nodeA, nodeB } = await openTwoNodes(engine, t)
    assert.equal(await nodeB.find('made-up'), null)
    const { kid } = await nodeA.rotate(BY_COMMAND_LINE)
    testStorage.clock.advance(SECOND - 1)
    assert.equal(await nodeB.find(kid), null)
    testStorage.clock.advance(1)
    assert.ok(await nodeB.find(kid))
  })

  test('a node applies a rotation that another node announced', async t => {
    const { testStorage, nodeA, nodeB } = await openTwoNodes(engine, t)
    nodeA.start()
    t.after(nodeA.stop)
    const { kid } = await nodeB.rotate(BY_COMMAND_LINE)
    await until(() => kidsOf(nodeA).includes(kid))
    nodeA.stop()
    const secondRotation = await nodeB.rotate(BY_COMMAND_LINE)
    await testStorage.storage.events.publish({ type: 'signing_keys.changed' })
    await testStorage.storage.store.signingKeys.list(testStorage.clock.now())
    assert.ok(!kidsOf(nodeA).includes(secondRotation.kid), 'stopped')
  })

  test('a node finds a rotation whose event was lost', async t => {
    const testStorage = await openTestStorage(engine, t)
    const nodeA = createSigningKeys({
      ...testStorage,
      audit: createAudit(testStorage),
      longestTokenSeconds: LONGEST_TOKEN_SECONDS,
      reloadInterval: 1,
    })
    await nodeA.load()
    nodeA.start()
    t.after(nodeA.stop)
    const firstKey = (await testStorage.storage.store.signingKeys.list(testStorage.clock.now()))[0]!
    const addedKey = await createSealedKey(testStorage)
    await testStorage.storage.store.signingKeys.insertNext(addedKey, testStorage.clock.now() + 900 * SECOND)
    await until(() => kidsOf(nodeA).includes(addedKey.id))
    assert.deepEqual(kidsOf(nodeA), [firstKey.id, addedKey.id])
  })

  test('keys that cannot be read are logged once per outage, and the known ones keep signing', async t => {
    const testStorage = await openTestStorage(engine, t)
    const { lines, logger } = createRecordingLog()
    let isDown = false
    let readCount = 0
    const { signingKeys } = testStorage.storage.store
    const list = async (now: number) => {
      try {
        if (isDown) throw new Error('down')
        return await signingKeys.list(now)
      } finally {
        readCount++
      }
    }
    const store = { ...testStorage.storage.store, signingKeys: { ...signingKeys, list } }
    const storage = { ...testStorage.storage, store }
    const nodeA = createSigningKeys({
      ...testStorage,
      storage,
      audit: createAudit(testStorage),
      log: logger,
      longestTokenSeconds: LONGEST_TOKEN_SECONDS,
    })
    await nodeA.load()
    nodeA.start()
    t.after(nodeA.stop)
    const readTwice = async () => {
      for (const next of [readCount + 1, readCount + 2]) {
        await storage.events.publish({ type: 'signing_keys.changed' })
        await until(() => readCount === next)
        await setImmediate()
      }
    }
    for (const outages of [1, 2]) {
      isDown = true
      await readTwice()
      assert.equal(lines.length, outages, lines.join())
      assert.match(lines.at(-1)!, /down.*signing keys could not be read/)
      assert.ok(nodeA.current().kid)
      isDown = false
      await readTwice()
    }
  })

  test('requests that meet an unknown key at once wait for one read, and all find it', async t => {
    const { nodeA, nodeB } = await openTwoNodes(engine, t)
    const { kid } = await nodeA.rotate(BY_COMMAND_LINE)
    const foundKeys = await Promise.all([nodeB.find(kid), nodeB.find(kid), nodeB.find(kid)])
    assert.deepEqual(
      foundKeys.map(key => key?.kid),
      [kid, kid, kid],
    )
  })

  test('a key whose public half is another’s is not opened, and nothing signs before keys are loaded', async t => {
    const testStorage = await openTestStorage(engine, t)
    const node = nodeOn(testStorage)
    assert.throws(() => node.current(), /load/)
    await node.load()
    const [key] = await testStorage.storage.store.signingKeys.list(testStorage.clock.now())
    const otherKey = await createSealedKey(testStorage)
    const tamperedKey = { ...otherKey, publicKey: key!.publicKey }
    await testStorage.storage.store.signingKeys.insertNext(
      tamperedKey,
      testStorage.clock.now() + 900 * SECOND,
    )
    await assert.rejects(node.reload(), SealError)
    await assert.rejects(nodeOn(testStorage).load(), new RegExp(`signing key ${otherKey.id}`))
  })

  test('a node whose clock is behind signs with the first key that another one made', async t => {
    const testStorage = await openTestStorage(engine, t)
    const nodeAhead = nodeOn(testStorage)
    await nodeAhead.load()
    testStorage.clock.advance(-SECOND)
    const nodeBehind = nodeOn(testStorage)
    await nodeBehind.load()
    assert.equal(nodeBehind.current().kid, nodeAhead.current().kid)
  })
})

/** A stored key that this service could have made. */
async function createSealedKey({ secrets, clock }: TestStorage): Promise<SigningKey> {
  const id = newId(clock.now())
  const seed = randomBytes(SEED_BYTES)
  return {
    id,
    alg: 'EdDSA',
    publicKey: keyPairOf(seed).publicKey.toString('base64url'),
    sealedPrivateKey: secrets.seal('signing-key', seed, id),
    createdAt: clock.now(),
    signsFrom: clock.now(),
    retiresAt: null,
  }
}

function createRecordingLog() {
  const lines: string[] = []
  return { lines, logger: createLog('error', { write: (line: string) => lines.push(line) }) }
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await setImmediate()
}
