import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { BY_COMMAND_LINE, createAudit } from '../../src/audit/audit.ts'
import { SECOND } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { RELOAD_INTERVAL } from '../../src/reloading.ts'
import { createSecrets, SealError } from '../../src/secrets.ts'
import { keyPairOf, SEED_BYTES } from '../../src/signing-keys/ed25519.ts'
import { createJwt } from '../../src/signing-keys/jwt.ts'
import type { SigningKey } from '../../src/signing-keys/signing-key.ts'
import {
  createSigningKeys,
  JWKS_MAX_AGE_SECONDS,
  PUBLISHED_BEFORE_USE,
  RETIREMENT_LEEWAY,
} from '../../src/signing-keys/signing-keys.ts'
import type { Storage } from '../../src/store.ts'
import { type EngineName, forEachEngine, openTestStorage, type TestStorage } from '../support/engines.ts'

const LONGEST = 900
const ISSUER = 'https://keyway.test'
const EXPECTED = { typ: 'agent_ws', audience: 'hub' } as const

function nodeOn(opened: TestStorage, storage: Storage = opened.storage) {
  const keys = createSigningKeys({
    ...opened,
    storage,
    audit: createAudit({ ...opened, storage }),
    longestTokenSeconds: LONGEST,
  })
  const jwt = createJwt({ signingKeys: keys, clock: opened.clock, issuer: ISSUER })
  const issue = () => {
    const iat = Math.floor(opened.clock.now() / 1000)
    const claims = { type: 'agent_ws', iss: ISSUER, aud: 'hub', sub: 's', iat, exp: iat + LONGEST, jti: 'j' }
    return jwt.sign('agent_ws', claims)
  }
  const accepts = async (token: string) => (await jwt.verify(token, EXPECTED)) !== null
  return { ...keys, issue, accepts }
}

async function twoNodes(engine: EngineName, t: Parameters<typeof openTestStorage>[1]) {
  const opened = await openTestStorage(engine, t)
  const one = nodeOn(opened)
  const two = nodeOn(opened, await opened.reopen())
  await Promise.all([one.load(), two.load()])
  return { opened, one, two }
}

const kids = (node: { jwks(): { keys: { kid: string }[] } }) => node.jwks().keys.map(({ kid }) => kid)

test('a new key is published and known to all nodes before it signs', () => {
  assert.ok(JWKS_MAX_AGE_SECONDS * SECOND + RELOAD_INTERVAL < PUBLISHED_BEFORE_USE)
  assert.deepEqual(
    [JWKS_MAX_AGE_SECONDS, RELOAD_INTERVAL, PUBLISHED_BEFORE_USE, RETIREMENT_LEEWAY],
    [30, 10_000, 60_000, 60_000],
  )
})

forEachEngine(engine => {
  test('two nodes that start concurrently on an empty database agree on one key', async t => {
    const { one, two } = await twoNodes(engine, t)
    assert.deepEqual(one.jwks(), two.jwks())
    assert.equal(kids(one).length, 1)
    assert.ok(await two.accepts(one.issue()))
  })

  test('signing keys survive a restart', async t => {
    const opened = await openTestStorage(engine, t)
    const before = nodeOn(opened)
    await before.load()
    const token = before.issue()
    const after = nodeOn(opened)
    await after.load()
    assert.ok(await after.accepts(token))
    assert.equal(after.current().kid, before.current().kid)
  })

  test('JWT-11: the key set contains only public keys', async t => {
    const { one } = await twoNodes(engine, t)
    const [key] = one.jwks().keys
    assert.deepEqual(Object.keys(key!).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x'])
    assert.ok(key?.alg === 'EdDSA')
    assert.deepEqual([key.kty, key.crv, key.use], ['OKP', 'Ed25519', 'sig'])
    const [stored] = await (await openTestStorage(engine, t)).storage.store.signingKeys.list(0)
    assert.equal(stored, undefined)
  })

  test('stored keys that no secret opens stop the start, and no new key is created', async t => {
    const opened = await openTestStorage(engine, t)
    await nodeOn(opened).load()
    const stranger = nodeOn({ ...opened, secrets: createSecrets([randomBytes(32)]) })
    await assert.rejects(stranger.load(), SealError)
    assert.equal((await opened.storage.store.signingKeys.list(0)).length, 1)
  })

  test('JWT-10: a new key is published at once, signs a minute later, and all tokens verify meanwhile', async t => {
    const { opened, one, two } = await twoNodes(engine, t)
    const oldKid = one.current().kid
    const { kid, signsFrom } = await one.rotate(BY_COMMAND_LINE)
    assert.equal(signsFrom, opened.clock.now() + PUBLISHED_BEFORE_USE)
    assert.deepEqual(kids(one), [oldKid, kid])
    await two.reload()
    assert.deepEqual(kids(two), [oldKid, kid])
    opened.clock.set(signsFrom - 1)
    assert.equal(one.current().kid, oldKid)
    const last = one.issue()
    opened.clock.set(signsFrom)
    assert.equal(one.current().kid, kid)
    assert.ok(await two.accepts(one.issue()))
    assert.ok(await two.accepts(last))
  })

  test('an old key is published until all tokens that it signed have expired, and refused after that', async t => {
    const { opened, one } = await twoNodes(engine, t)
    const oldKid = one.current().kid
    const { kid, signsFrom } = await one.rotate(BY_COMMAND_LINE)
    const retires = signsFrom + LONGEST * SECOND + RETIREMENT_LEEWAY
    opened.clock.set(retires - 1)
    assert.deepEqual(kids(one), [oldKid, kid])
    assert.ok(await one.find(oldKid))
    opened.clock.set(retires)
    assert.deepEqual(kids(one), [kid])
    assert.equal(await one.find(oldKid), null)
  })

  test('a node that missed the event of a new key loads it when it receives a token signed with it', async t => {
    const { opened, one, two } = await twoNodes(engine, t)
    const { kid, signsFrom } = await one.rotate(BY_COMMAND_LINE)
    opened.clock.set(signsFrom)
    const token = one.issue()
    assert.ok(!kids(two).includes(kid))
    assert.ok(await two.accepts(token))
  })

  test('unknown key ids cause at most one read a second', async t => {
    const { opened, one, two } = await twoNodes(engine, t)
    assert.equal(await two.find('made-up'), null)
    const { kid } = await one.rotate(BY_COMMAND_LINE)
    opened.clock.advance(SECOND - 1)
    assert.equal(await two.find(kid), null)
    opened.clock.advance(1)
    assert.ok(await two.find(kid))
  })

  test('a node applies a rotation that another node announced', async t => {
    const { opened, one, two } = await twoNodes(engine, t)
    one.start()
    t.after(one.stop)
    const { kid } = await two.rotate(BY_COMMAND_LINE)
    await until(() => kids(one).includes(kid))
    one.stop()
    const next = await two.rotate(BY_COMMAND_LINE)
    await opened.storage.events.publish({ type: 'signing_keys.changed' })
    await opened.storage.store.signingKeys.list(opened.clock.now())
    assert.ok(!kids(one).includes(next.kid), 'stopped')
  })

  test('a node finds a rotation whose event was lost', async t => {
    const opened = await openTestStorage(engine, t)
    const one = createSigningKeys({
      ...opened,
      audit: createAudit(opened),
      longestTokenSeconds: LONGEST,
      reloadInterval: 1,
    })
    await one.load()
    one.start()
    t.after(one.stop)
    const first = (await opened.storage.store.signingKeys.list(opened.clock.now()))[0]!
    const added = await sealedBy(opened)
    await opened.storage.store.signingKeys.insertNext(added, opened.clock.now() + 900 * SECOND)
    await until(() => kids(one).includes(added.id))
    assert.deepEqual(kids(one), [first.id, added.id])
  })

  test('keys that cannot be read are logged once per outage, and the known ones keep signing', async t => {
    const opened = await openTestStorage(engine, t)
    const { lines, logger } = linesOf()
    let isDown = false
    let reads = 0
    const { signingKeys } = opened.storage.store
    const list = async (now: number) => {
      try {
        if (isDown) throw new Error('down')
        return await signingKeys.list(now)
      } finally {
        reads++
      }
    }
    const store = { ...opened.storage.store, signingKeys: { ...signingKeys, list } }
    const storage = { ...opened.storage, store }
    const one = createSigningKeys({
      ...opened,
      storage,
      audit: createAudit(opened),
      log: logger,
      longestTokenSeconds: LONGEST,
    })
    await one.load()
    one.start()
    t.after(one.stop)
    const readTwice = async () => {
      for (const next of [reads + 1, reads + 2]) {
        await storage.events.publish({ type: 'signing_keys.changed' })
        await until(() => reads === next)
        await setImmediate()
      }
    }
    for (const outages of [1, 2]) {
      isDown = true
      await readTwice()
      assert.equal(lines.length, outages, lines.join())
      assert.match(lines.at(-1)!, /down.*signing keys could not be read/)
      assert.ok(one.current().kid)
      isDown = false
      await readTwice()
    }
  })

  test('requests that meet an unknown key at once wait for one read, and all find it', async t => {
    const { one, two } = await twoNodes(engine, t)
    const { kid } = await one.rotate(BY_COMMAND_LINE)
    const found = await Promise.all([two.find(kid), two.find(kid), two.find(kid)])
    assert.deepEqual(
      found.map(key => key?.kid),
      [kid, kid, kid],
    )
  })

  test('a key whose public half is another’s is not opened, and nothing signs before keys are loaded', async t => {
    const opened = await openTestStorage(engine, t)
    const node = nodeOn(opened)
    assert.throws(() => node.current(), /load/)
    await node.load()
    const [key] = await opened.storage.store.signingKeys.list(opened.clock.now())
    const other = await sealedBy(opened)
    const tampered = { ...other, publicKey: key!.publicKey }
    await opened.storage.store.signingKeys.insertNext(tampered, opened.clock.now() + 900 * SECOND)
    await assert.rejects(node.reload(), SealError)
    await assert.rejects(nodeOn(opened).load(), new RegExp(`signing key ${other.id}`))
  })

  test('a node whose clock is behind signs with the first key that another one made', async t => {
    const opened = await openTestStorage(engine, t)
    const ahead = nodeOn(opened)
    await ahead.load()
    opened.clock.advance(-SECOND)
    const behind = nodeOn(opened)
    await behind.load()
    assert.equal(behind.current().kid, ahead.current().kid)
  })
})

/** A stored key that this service could have made. */
async function sealedBy({ secrets, clock }: TestStorage): Promise<SigningKey> {
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

function linesOf() {
  const lines: string[] = []
  return { lines, logger: createLog('error', { write: (line: string) => lines.push(line) }) }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await setImmediate()
}
