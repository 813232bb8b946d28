import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { formatMoney } from '../../src/billing/money.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { keyway, outputOf } from '../support/command-line.ts'
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

/** A service to back up: two users, three keys and a charge. */
async function startSource(engine: EngineName, t: TestContext) {
  const settings = await freshSettings(engine, t)
  const links = createPrintedLinks()
  const node = await startNode(t, settings, links)
  const secret = await registerShop(node)
  const ann = await signIn(node.origin, links, 'ann@example.com')
  await signIn(node.origin, links, 'bob@example.com')
  const keys = []
  for (let n = 0; n < 3; n++) keys.push((await createKey(node.origin, ann.access_token)).body)
  await call(node.origin, 'PUT', '/v1/me/charge-authorizations/shop', { token: ann.access_token })
  const firstCharge = await charge(node.origin, secret, ann.user.id, 'before-the-backup', '0.10', keys[0].id)
  assert.equal(firstCharge.status, 201)
  const file = join(settings.KEYWAY_DATA_DIR!, 'backup.keyway')
  return { settings, links, secret, node, ann, keys, file }
}

const enginePairs: [EngineName, EngineName][] = [
  ['sqlite', 'sqlite'],
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
]

for (const [from, to] of enginePairs) {
  const skip = (from === 'postgres' || to === 'postgres') && postgresMissing()
  describe(`a backup of ${from} restored into ${to}`, { skip }, () => {
    test('re-applies later revocations, grants and charges from the journal', async t => {
      const source = await startSource(from, t)
      const { node, ann, keys, links, secret, file } = source
      const guest = { email: parseEmailAddress('guest@example.com')!, role: 'admin' as const }
      const invitation = await node.services.invitations.invite(guest, BY_COMMAND_LINE)
      const chargesDuringBackup = Promise.all(
        Array.from({ length: 5 }, (_, n) =>
          charge(node.origin, secret, ann.user.id, `while-backing-up-${n}`),
        ),
      )
      const backupOutput = await outputOf(keyway(source.settings, 'backup', file))
      assert.match(backupOutput, /2 users, 3 api keys/)
      await chargesDuringBackup
      assert.equal(statSync(file).mode & 0o777, 0o600)

      await revokeKey(node.origin, ann.access_token, keys[1].id)
      await node.services.policies.change({ defaultKeyLifetimeDays: 7 }, BY_COMMAND_LINE)
      const lateIdempotencyKey = 'charged-after-the-backup'
      const lateCharge = (origin: string) =>
        charge(origin, secret, ann.user.id, lateIdempotencyKey, '0.10', keys[0].id)
      assert.equal((await lateCharge(node.origin)).status, 201)
      await outputOf(keyway(source.settings, 'users', 'suspend', 'bob@example.com'))
      await signIn(node.origin, links, 'carol@example.com')
      await call(node.origin, 'DELETE', '/v1/me/charge-authorizations/console', { token: ann.access_token })
      await sendLink(node.origin, 'ann@example.com')
      await links.next('ann@example.com')
      await node.close()

      const target = await freshSettings(to, t)
      const journal = join(source.settings.KEYWAY_DATA_DIR!, 'journal')
      const restoreOutput = await outputOf(keyway(target, 'restore', file, '--journal', journal))
      assert.match(restoreOutput, /changes since then are applied/)
      const restoredNode = await startNode(t, target, links)
      const exchanges = await Promise.all(
        keys.map(async ({ key }) => (await exchange(restoredNode.origin, key)).body.code ?? 'works'),
      )
      assert.deepEqual(exchanges, ['works', 'api_key_revoked', 'works'])
      const { invitations } = restoredNode.services.storage.store
      assert.notEqual((await invitations.find(invitation.id))!.revokedAt, null)
      assert.equal(restoredNode.services.policies.current().defaultKeyLifetimeDays, 7)
      const oldTokenAnswer = await call(restoredNode.origin, 'GET', '/v1/me', { token: ann.access_token })
      assert.equal(oldTokenAnswer.status, 401)
      assert.equal((await refresh(restoredNode.origin, ann.refresh_token)).status, 401)

      const laterSession = await signIn(restoredNode.origin, links, 'ann@example.com')
      assert.equal(laterSession.user.id, ann.user.id)
      const me = (await call(restoredNode.origin, 'GET', '/v1/me', { token: laterSession.access_token })).body
      assert.equal(me.balance.amount, '1.30')
      const withdrawnAuthorization = me.charge_authorizations.find(
        (one: { app_id: string }) => one.app_id === 'console',
      )
      assert.notEqual(withdrawnAuthorization.revoked_at, null)
      const repeatedCharge = await lateCharge(restoredNode.origin)
      assert.equal(repeatedCharge.status, 201, 'the same Idempotency-Key gives the same entry')
      const accountAfterRepetition = (
        await call(restoredNode.origin, 'GET', '/v1/me', { token: laterSession.access_token })
      ).body
      assert.equal(accountAfterRepetition.balance.amount, '1.30', 'and charges nothing twice')
      const spentOfKey = (await restoredNode.services.storage.store.billing.spentOf([keys[0].id])).get(
        keys[0].id,
      )!
      assert.equal(formatMoney(spentOfKey.totalSpent), '0.20', 'of the key, before and after the backup')

      await sendLink(restoredNode.origin, 'bob@example.com')
      const suspendedAnswer = await verifyLink(
        restoredNode.origin,
        'bob@example.com',
        await links.next('bob@example.com'),
      )
      assert.equal(suspendedAnswer.body.code, 'account_suspended')
      const carol = await signIn(restoredNode.origin, links, 'carol@example.com')
      const carolsAccount = (await call(restoredNode.origin, 'GET', '/v1/me', { token: carol.access_token }))
        .body
      assert.equal(
        carolsAccount.balance.amount,
        '0.00',
        'her address got its trial credit before the restore',
      )
    })

    test('revokes all keys without a journal, unless --keep-keys is given, and reports which of both it did', async t => {
      const source = await startSource(from, t)
      await outputOf(keyway(source.settings, 'backup', source.file))
      const revokingTarget = await freshSettings(to, t)
      assert.match(await outputOf(keyway(revokingTarget, 'restore', source.file)), /All 3 keys are revoked/)
      const keepingTarget = await freshSettings(to, t)
      assert.match(
        await outputOf(keyway(keepingTarget, 'restore', source.file, '--keep-keys')),
        /WORKS AGAIN/,
      )
      const [a, b] = [await startNode(t, revokingTarget), await startNode(t, keepingTarget)]
      const { key } = source.keys[0]
      assert.equal((await exchange(a.origin, key)).body.code, 'api_key_revoked')
      assert.equal((await exchange(b.origin, key)).status, 200)
      const kidsOf = async (origin: string) =>
        (await call(origin, 'GET', '/.well-known/jwks.json')).body.keys.map((jwk: { kid: string }) => jwk.kid)
      const oldKids = await kidsOf(source.node.origin)
      assert.ok(
        !(await kidsOf(b.origin)).some((kid: string) => oldKids.includes(kid)),
        'signing keys are new',
      )
    })
  })
}

describe('a restore is refused with', () => {
  test('another secret, a truncated file, a non-empty database or a running server', async t => {
    const source = await startSource('sqlite', t)
    await outputOf(keyway(source.settings, 'backup', source.file))
    const expectRefusal = async (settings: Record<string, string>, expected: RegExp, ...words: string[]) => {
      const { status, err } = await keyway(settings, ...words)
      assert.equal(status, 1, err)
      assert.match(err, expected)
      assert.equal(err.trim().split('\n').length, 1, err)
    }
    await expectRefusal(source.settings, /not overwritten/, 'backup', source.file)
    await expectRefusal(source.settings, /server runs/, 'restore', source.file)
    await source.node.close()
    await expectRefusal(source.settings, /has accounts already/, 'restore', source.file)
    const target = await freshSettings('sqlite', t)
    await expectRefusal(
      { ...target, KEYWAY_SECRET: OTHER_SECRET },
      /written with the secret/,
      'restore',
      source.file,
    )
    await expectRefusal(
      target,
      /cannot be read/,
      'restore',
      source.file,
      '--journal',
      join(source.file, 'nowhere'),
    )

    const backupBytes = readFileSync(source.file)
    const damagedFile = join(source.file, '..', 'cut', 'backup.keyway')
    mkdirSync(dirname(damagedFile))
    writeFileSync(damagedFile, backupBytes)
    truncateSync(damagedFile, backupBytes.length - 30)
    await expectRefusal(target, /truncated/, 'restore', damagedFile)
    writeFileSync(damagedFile, 'something else')
    await expectRefusal(target, /not a backup/, 'restore', damagedFile)
    await outputOf(keyway(target, 'restore', source.file))
  })

  test('a journal that began after the backup or is of another service', async t => {
    const source = await startSource('sqlite', t)
    await outputOf(keyway(source.settings, 'backup', source.file))
    const target = await freshSettings('sqlite', t)
    const journal = join(target.KEYWAY_DATA_DIR!, 'younger')
    mkdirSync(journal)
    await writeJournal(journal, source.node.services.serviceId, [])
    const { status, err } = await keyway(target, 'restore', source.file, '--journal', journal)
    assert.equal(status, 1)
    assert.match(err, /begins at .* after the backup/)

    const foreignJournal = join(journal, '..', 'foreign')
    mkdirSync(foreignJournal)
    await writeJournal(foreignJournal, '0123456789abcdef', [])
    const foreignRestore = await keyway(target, 'restore', source.file, '--journal', foreignJournal)
    assert.equal(foreignRestore.status, 1)
    assert.match(foreignRestore.err, /of another service \(0123456789abcdef; this one is \w{16}\)/)
    await outputOf(keyway(target, 'restore', source.file))
  })
})

test('a journal covers the time since the first start, also without any entries', async t => {
  const settings = await freshSettings('sqlite', t)
  const links = createPrintedLinks()
  const node = await startNode(t, settings, links)
  const file = join(settings.KEYWAY_DATA_DIR!, 'empty.keyway')
  await outputOf(keyway(settings, 'backup', file))
  await signIn(node.origin, links, 'first@example.com')
  await node.close()
  const target = await freshSettings('sqlite', t)
  const journal = join(settings.KEYWAY_DATA_DIR!, 'journal')
  await outputOf(keyway(target, 'restore', file, '--journal', journal))
  const restoredNode = await startNode(t, target, links)
  const laterSession = await signIn(restoredNode.origin, links, 'first@example.com')
  const me = await call(restoredNode.origin, 'GET', '/v1/me', { token: laterSession.access_token })
  assert.equal(me.body.balance.amount, '0.00', 'nothing is granted twice')
})

for (const engine of ['sqlite', 'postgres'] as const) {
  describe(`rotating KEYWAY_SECRET on ${engine}`, {
    skip: engine === 'postgres' && postgresMissing(),
  }, () => {
    test('keys reseal re-encrypts all values while the service runs, and the old secret can be removed', async t => {
      const source = await startSource(engine, t)
      const bothSecrets = { ...source.settings, KEYWAY_SECRET: `${OTHER_SECRET},${NODE_SECRET}` }
      await source.node.close()
      const servingNode = await startNode(t, bothSecrets, source.links)
      assert.match(await outputOf(keyway(bothSecrets, 'keys', 'reseal')), /Re-encrypted \d+ values/)
      assert.match(await outputOf(keyway(bothSecrets, 'keys', 'reseal')), /Re-encrypted 0 values/)
      const refreshAnswer = await refresh(servingNode.origin, source.ann.refresh_token)
      assert.equal(refreshAnswer.status, 200)
      await servingNode.close()
      const nodeWithNewSecret = await startNode(
        t,
        { ...source.settings, KEYWAY_SECRET: OTHER_SECRET },
        source.links,
      )
      assert.equal((await refresh(nodeWithNewSecret.origin, refreshAnswer.body.refresh_token)).status, 200)
      assert.equal((await exchange(nodeWithNewSecret.origin, source.keys[0].key)).status, 200)
      assert.equal(
        (await signIn(nodeWithNewSecret.origin, source.links, 'ann@example.com')).user.id,
        source.ann.user.id,
      )
      const newUserTokens = await signIn(nodeWithNewSecret.origin, source.links, 'dora@example.com')
      assert.ok(newUserTokens.access_token)
    })
  })
}
