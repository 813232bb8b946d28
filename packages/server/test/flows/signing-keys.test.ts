import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { SECOND } from '../../src/clock.ts'
import { createSecrets, SealError } from '../../src/secrets.ts'
import { createJwt } from '../../src/signing-keys/jwt.ts'
import {
  createSigningKeys,
  JWKS_MAX_AGE_SECONDS,
  PUBLISHED_BEFORE_USE,
  RELOAD_INTERVAL,
  RETIREMENT_LEEWAY,
} from '../../src/signing-keys/signing-keys.ts'
import type { Storage } from '../../src/store.ts'
import { type EngineName, forEachEngine, openTestStorage, type TestStorage } from '../support/engines.ts'

const LONGEST = 900
const ISSUER = 'https://keyway.test'
const EXPECTED = { typ: 'agent_ws', audience: 'hub' } as const

function nodeOn(opened: TestStorage, storage: Storage = opened.storage) {
  const keys = createSigningKeys({ ...opened, storage, longestTokenSeconds: LONGEST })
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
    assert.deepEqual([key!.kty, key!.crv, key!.alg, key!.use], ['OKP', 'Ed25519', 'EdDSA', 'sig'])
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
    const { kid, signsFrom } = await one.rotate()
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
    const { kid, signsFrom } = await one.rotate()
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
    const { kid, signsFrom } = await one.rotate()
    opened.clock.set(signsFrom)
    const token = one.issue()
    assert.ok(!kids(two).includes(kid))
    assert.ok(await two.accepts(token))
  })

  test('unknown key ids cause at most one read a second', async t => {
    const { opened, one, two } = await twoNodes(engine, t)
    assert.equal(await two.find('made-up'), null)
    const { kid } = await one.rotate()
    opened.clock.advance(SECOND - 1)
    assert.equal(await two.find(kid), null)
    opened.clock.advance(1)
    assert.ok(await two.find(kid))
  })

  test('a node applies a rotation that another node announced', async t => {
    const { opened, one } = await twoNodes(engine, t)
    one.start()
    t.after(one.stop)
    const received = new Promise<void>(resolve => {
      t.after(opened.storage.events.subscribe(({ type }) => type === 'signing_keys.changed' && resolve()))
    })
    const { kid } = await nodeOnLoaded(opened)
    await received
    await one.reload()
    assert.ok(kids(one).includes(kid))
  })
})

async function nodeOnLoaded(opened: TestStorage): Promise<{ kid: string }> {
  const other = nodeOn(opened)
  await other.load()
  return await other.rotate()
}
