import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { formatMoney } from '../../src/billing/money.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { done, keyway } from '../support/command-line.ts'
import { type EngineName, postgresMissing } from '../support/engines.ts'
import {
  call,
  createKey,
  createPrintedLinks,
  exchange,
  NODE_SECRET,
  refresh,
  revokeKey,
  sendLink,
  signIn,
  startNode,
  verifyLink,
} from '../support/nodes.ts'
import { charge, freshSettings, registerShop } from './commands.ts'
import { writeJournal } from './files.ts'

const OTHER_SECRET = Buffer.alloc(32, 6).toString('base64')

/** A service with two users, three keys and a charge. */
async function openShop(engine: EngineName, t: TestContext) {
  const settings = await freshSettings(engine, t)
  const links = createPrintedLinks()
  const node = await startNode(t, settings, links)
  const secret = await registerShop(node)
  const ann = await signIn(node.origin, links, 'ann@example.com')
  await signIn(node.origin, links, 'bob@example.com')
  const keys = []
  for (let n = 0; n < 3; n++) keys.push((await createKey(node.origin, ann.access_token)).body)
  await call(node.origin, 'PUT', '/v1/me/charge-authorizations/shop', { token: ann.access_token })
  const first = await charge(node.origin, secret, ann.user.id, 'before-the-backup', '0.10', keys[0].id)
  assert.equal(first.status, 201)
  const file = join(settings.KEYWAY_DATA_DIR!, 'backup.keyway')
  return { settings, links, secret, node, ann, keys, file }
}

const moves: [EngineName, EngineName][] = [
  ['sqlite', 'sqlite'],
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
]

for (const [from, to] of moves) {
  const skip = (from === 'postgres' || to === 'postgres') && postgresMissing()
  describe(`a backup of ${from} restored into ${to}`, { skip }, () => {
    test('re-applies later revocations, grants and charges from the journal', async t => {
      const shop = await openShop(from, t)
      const { node, ann, keys, links, secret, file } = shop
      const guest = { email: parseEmailAddress('guest@example.com')!, role: 'admin' as const }
      const invited = await node.services.invitations.invite(guest, BY_COMMAND_LINE)
      const charging = Promise.all(
        Array.from({ length: 5 }, (_, n) =>
          charge(node.origin, secret, ann.user.id, `while-backing-up-${n}`),
        ),
      )
      const said = await done(keyway(shop.settings, 'backup', file))
      assert.match(said, /2 users, 3 api keys/)
      await charging
      assert.equal(statSync(file).mode & 0o777, 0o600)

      await revokeKey(node.origin, ann.access_token, keys[1].id)
      await node.services.policies.change({ defaultKeyLifetimeDays: 7 }, BY_COMMAND_LINE)
      const late = 'charged-after-the-backup'
      const lateCharge = (origin: string) => charge(origin, secret, ann.user.id, late, '0.10', keys[0].id)
      assert.equal((await lateCharge(node.origin)).status, 201)
      await done(keyway(shop.settings, 'users', 'suspend', 'bob@example.com'))
      await signIn(node.origin, links, 'carol@example.com')
      await call(node.origin, 'DELETE', '/v1/me/charge-authorizations/console', { token: ann.access_token })
      await sendLink(node.origin, 'ann@example.com')
      await links.next('ann@example.com')
      await node.close()

      const target = await freshSettings(to, t)
      const journal = join(shop.settings.KEYWAY_DATA_DIR!, 'journal')
      const told = await done(keyway(target, 'restore', file, '--journal', journal))
      assert.match(told, /changes since then are applied/)
      const restored = await startNode(t, target, links)
      const exchanges = await Promise.all(
        keys.map(async ({ key }) => (await exchange(restored.origin, key)).body.code ?? 'works'),
      )
      assert.deepEqual(exchanges, ['works', 'api_key_revoked', 'works'])
      const { invitations } = restored.services.storage.store
      assert.notEqual((await invitations.find(invited.id))!.revokedAt, null)
      assert.equal(restored.services.policies.current().defaultKeyLifetimeDays, 7)
      const old = await call(restored.origin, 'GET', '/v1/me', { token: ann.access_token })
      assert.equal(old.status, 401)
      assert.equal((await refresh(restored.origin, ann.refresh_token)).status, 401)

      const again = await signIn(restored.origin, links, 'ann@example.com')
      assert.equal(again.user.id, ann.user.id)
      const me = (await call(restored.origin, 'GET', '/v1/me', { token: again.access_token })).body
      assert.equal(me.balance.amount, '1.30')
      const withdrawn = me.charge_authorizations.find((one: { app_id: string }) => one.app_id === 'console')
      assert.notEqual(withdrawn.revoked_at, null)
      const repeated = await lateCharge(restored.origin)
      assert.equal(repeated.status, 201, 'the same key gives the same entry')
      const after = (await call(restored.origin, 'GET', '/v1/me', { token: again.access_token })).body
      assert.equal(after.balance.amount, '1.30', 'and charges nothing twice')
      const spent = (await restored.services.storage.store.billing.spentOf([keys[0].id])).get(keys[0].id)!
      assert.equal(formatMoney(spent.totalSpent), '0.20', 'of the key, before and after the backup')

      await sendLink(restored.origin, 'bob@example.com')
      const suspended = await verifyLink(
        restored.origin,
        'bob@example.com',
        await links.next('bob@example.com'),
      )
      assert.equal(suspended.body.code, 'account_suspended')
      const carol = await signIn(restored.origin, links, 'carol@example.com')
      const hers = (await call(restored.origin, 'GET', '/v1/me', { token: carol.access_token })).body
      assert.equal(hers.balance.amount, '0.00', 'her address had its credit')
    })

    test('revokes all keys without a journal, unless --keep-keys is given, and reports either', async t => {
      const shop = await openShop(from, t)
      await done(keyway(shop.settings, 'backup', shop.file))
      const strict = await freshSettings(to, t)
      assert.match(await done(keyway(strict, 'restore', shop.file)), /All 3 keys are revoked/)
      const kept = await freshSettings(to, t)
      assert.match(await done(keyway(kept, 'restore', shop.file, '--keep-keys')), /WORKS AGAIN/)
      const [a, b] = [await startNode(t, strict), await startNode(t, kept)]
      const { key } = shop.keys[0]
      assert.equal((await exchange(a.origin, key)).body.code, 'api_key_revoked')
      assert.equal((await exchange(b.origin, key)).status, 200)
      const kids = async (origin: string) =>
        (await call(origin, 'GET', '/.well-known/jwks.json')).body.keys.map((jwk: { kid: string }) => jwk.kid)
      const old = await kids(shop.node.origin)
      assert.ok(!(await kids(b.origin)).some((kid: string) => old.includes(kid)), 'signing keys are new')
    })
  })
}

describe('a restore is refused with', () => {
  test('another secret, a truncated file, a non-empty database or a running server', async t => {
    const shop = await openShop('sqlite', t)
    await done(keyway(shop.settings, 'backup', shop.file))
    const refused = async (settings: Record<string, string>, because: RegExp, ...words: string[]) => {
      const { status, err } = await keyway(settings, ...words)
      assert.equal(status, 1, err)
      assert.match(err, because)
      assert.equal(err.trim().split('\n').length, 1, err)
    }
    await refused(shop.settings, /not overwritten/, 'backup', shop.file)
    await refused(shop.settings, /server runs/, 'restore', shop.file)
    await shop.node.close()
    await refused(shop.settings, /has accounts already/, 'restore', shop.file)
    const target = await freshSettings('sqlite', t)
    await refused({ ...target, KEYWAY_SECRET: OTHER_SECRET }, /written with the secret/, 'restore', shop.file)
    await refused(target, /cannot be read/, 'restore', shop.file, '--journal', join(shop.file, 'nowhere'))

    const whole = readFileSync(shop.file)
    const cut = join(shop.file, '..', 'cut', 'backup.keyway')
    mkdirSync(dirname(cut))
    writeFileSync(cut, whole)
    truncateSync(cut, whole.length - 30)
    await refused(target, /truncated/, 'restore', cut)
    writeFileSync(cut, 'something else')
    await refused(target, /not a backup/, 'restore', cut)
    await done(keyway(target, 'restore', shop.file))
  })

  test('a journal that began after the backup or is of another service', async t => {
    const shop = await openShop('sqlite', t)
    await done(keyway(shop.settings, 'backup', shop.file))
    const target = await freshSettings('sqlite', t)
    const journal = join(target.KEYWAY_DATA_DIR!, 'younger')
    mkdirSync(journal)
    await writeJournal(journal, shop.node.services.instance, [])
    const { status, err } = await keyway(target, 'restore', shop.file, '--journal', journal)
    assert.equal(status, 1)
    assert.match(err, /begins at .* after the backup/)

    const foreign = join(journal, '..', 'foreign')
    mkdirSync(foreign)
    await writeJournal(foreign, '0123456789abcdef', [])
    const other = await keyway(target, 'restore', shop.file, '--journal', foreign)
    assert.equal(other.status, 1)
    assert.match(other.err, /of another service \(0123456789abcdef; this one is \w{16}\)/)
    await done(keyway(target, 'restore', shop.file))
  })
})

test('a journal covers the time since the first start, also without any entries', async t => {
  const settings = await freshSettings('sqlite', t)
  const links = createPrintedLinks()
  const node = await startNode(t, settings, links)
  const file = join(settings.KEYWAY_DATA_DIR!, 'empty.keyway')
  await done(keyway(settings, 'backup', file))
  await signIn(node.origin, links, 'first@example.com')
  await node.close()
  const target = await freshSettings('sqlite', t)
  const journal = join(settings.KEYWAY_DATA_DIR!, 'journal')
  await done(keyway(target, 'restore', file, '--journal', journal))
  const restored = await startNode(t, target, links)
  const again = await signIn(restored.origin, links, 'first@example.com')
  const me = await call(restored.origin, 'GET', '/v1/me', { token: again.access_token })
  assert.equal(me.body.balance.amount, '0.00', 'nothing is granted twice')
})

for (const engine of ['sqlite', 'postgres'] as const) {
  describe(`rotating KEYWAY_SECRET on ${engine}`, {
    skip: engine === 'postgres' && postgresMissing(),
  }, () => {
    test('keys reseal re-encrypts all values while the service runs, and the old secret can be removed', async t => {
      const shop = await openShop(engine, t)
      const both = { ...shop.settings, KEYWAY_SECRET: `${OTHER_SECRET},${NODE_SECRET}` }
      await shop.node.close()
      const serving = await startNode(t, both, shop.links)
      assert.match(await done(keyway(both, 'keys', 'reseal')), /Re-encrypted \d+ values/)
      assert.match(await done(keyway(both, 'keys', 'reseal')), /Re-encrypted 0 values/)
      const during = await refresh(serving.origin, shop.ann.refresh_token)
      assert.equal(during.status, 200)
      await serving.close()
      const alone = await startNode(t, { ...shop.settings, KEYWAY_SECRET: OTHER_SECRET }, shop.links)
      assert.equal((await refresh(alone.origin, during.body.refresh_token)).status, 200)
      assert.equal((await exchange(alone.origin, shop.keys[0].key)).status, 200)
      assert.equal((await signIn(alone.origin, shop.links, 'ann@example.com')).user.id, shop.ann.user.id)
      const fresh = await signIn(alone.origin, shop.links, 'dora@example.com')
      assert.ok(fresh.access_token)
    })
  })
}
