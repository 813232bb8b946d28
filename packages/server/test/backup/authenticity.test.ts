import assert from 'node:assert/strict'
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { createSecrets } from '../../src/secrets.ts'
import { done, keyway } from '../support/command-line.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { basic } from '../support/http.ts'
import { call, createPrintedLinks, NODE_SECRET, signIn, startNode } from '../support/nodes.ts'
import { freshSettings, giveConsent, registerShop } from './commands.ts'
import { changeBackup, linesOf, namesIn, toOldBackup, writeJournal, writeOldJournal } from './files.ts'

const OTHER_SECRET = Buffer.alloc(32, 6).toString('base64')

/** A backup of a stopped service with the account of ann, and an empty database to restore into. */
async function backUp(engine: EngineName, t: TestContext) {
  const settings = await freshSettings(engine, t)
  const links = createPrintedLinks()
  const node = await startNode(t, settings, links)
  const ann = await signIn(node.origin, links, 'ann@example.com')
  const file = join(settings.KEYWAY_DATA_DIR!, 'monday.keyway')
  await done(keyway(settings, 'backup', file))
  const { instance } = node.services
  await node.close()
  const target = await freshSettings(engine, t)
  return { settings, links, ann, file, instance, target, journal: settings.KEYWAY_JOURNAL_DIR! }
}

/**
 * Expects one line and status 1. A later successful restore shows that nothing was written, since it needs an empty
 * database.
 */
async function refused(settings: Record<string, string>, because: RegExp, ...words: string[]): Promise<void> {
  const { status, err } = await keyway(settings, ...words)
  assert.equal(status, 1, `${words.join(' ')}: ${err}`)
  assert.match(err, because)
  assert.equal(err.trim().split('\n').length, 1, err)
}

forEachEngine(engine => {
  describe('a restore is refused and writes nothing', () => {
    test('from a backup with a changed, added, removed or reordered row, or with another file name', async t => {
      const { file, target } = await backUp(engine, t)
      const forged = (change: (lines: string[]) => string[]) => changeBackup(file, file, change)
      const genuine = `${file}.genuine`
      copyFileSync(file, genuine)
      const changes: ((lines: string[]) => string[])[] = [
        lines => lines.map(line => line.replace('"role":"user"', '"role":"admin"')),
        lines => [...lines.slice(0, -1), lines[1]!.replace(/"id":"[^"]*"/, '"id":"0"'), lines.at(-1)!],
        lines => [lines[0]!, ...lines.slice(2)],
        lines => [lines[0]!, lines[2]!, lines[1]!, ...lines.slice(3)],
        lines => [lines[0]!.replace(/"created_at":\d+/, '"created_at":1'), ...lines.slice(1)],
      ]
      for (const change of changes) {
        forged(change)
        await refused(target, /was modified/, 'restore', file)
        copyFileSync(genuine, file)
      }
      const newer = file.replace('monday', 'tuesday')
      copyFileSync(genuine, newer)
      await refused(target, /tuesday.keyway was written as "monday.keyway" at/, 'restore', newer)
      await refused(
        { ...target, KEYWAY_SECRET: OTHER_SECRET },
        /with the secret \w{8}, but KEYWAY_SECRET has \w{8}\./,
        'restore',
        file,
      )
      const rotated = { ...target, KEYWAY_SECRET: `${OTHER_SECRET},${NODE_SECRET}` }
      assert.match(await done(keyway(rotated, 'restore', file)), /1 users/)
    })

    test('from a journal with a forged, changed, moved or missing line or file', async t => {
      const { ann, file, target, journal, instance } = await backUp(engine, t)
      const promoted = {
        type: 'user',
        at: Date.now(),
        id: ann.user.id,
        status: 'active',
        role: 'admin',
      } as const
      const earlier = await writeJournal(journal, instance, [
        { type: 'session', at: Date.now(), id: 'a', ended_by: 'logout' },
        { type: 'session', at: Date.now(), id: 'b', ended_by: 'logout' },
      ])
      await writeJournal(journal, instance, [
        { type: 'session', at: Date.now(), id: 'c', ended_by: 'logout' },
      ])
      const path = join(journal, earlier)
      const lines = linesOf(path)
      const [head = '', first = '', second = '', closed = ''] = lines
      const [other = ''] = namesIn(journal).filter(name => name !== earlier)
      const foreign = linesOf(join(journal, other)).at(-1)!

      const restore = ['restore', file, '--journal', journal]
      const withLines = async (text: string, because: RegExp) => {
        writeFileSync(path, text)
        await refused(target, because, ...restore)
        writeFileSync(path, lines.join(''))
      }
      const wrong = /has a wrong MAC/
      await withLines(`${lines.join('')}${JSON.stringify(promoted)}\n`, /Line 5 .* has no MAC/)
      await withLines([head, first.replace('"a"', '"x"'), second, closed].join(''), wrong)
      await withLines([head, second, closed].join(''), wrong)
      await withLines([head, second, first, closed].join(''), wrong)
      await withLines([head, first, foreign].join(''), wrong)
      await withLines([first, second].join(''), wrong)
      await withLines([head, first].join(''), /incomplete: .* is truncated/)
      await withLines(`${head}${first}${'x'.repeat(5000)}`, /incomplete: .* is truncated/)
      await withLines(`${head}${'x'.repeat(100_000)}\n`, /Line 2 .* is too long/)

      const elsewhere = join(journal, '..', earlier)
      renameSync(path, elsewhere)
      await refused(target, /incomplete: .* is missing/, ...restore)
      renameSync(elsewhere, join(journal, `2030-01-01-000000000000.v2.ndjson`))
      await refused(target, /has another name here/, ...restore)
      renameSync(join(journal, `2030-01-01-000000000000.v2.ndjson`), path)

      const theirs = await writeJournal(journal, '0123456789abcdef', [promoted])
      await refused(target, /of another service \(0123456789abcdef/, ...restore)
      rmSync(join(journal, theirs))
      const secrets = createSecrets([Buffer.from(OTHER_SECRET, 'base64')])
      const sealed = await writeJournal(journal, instance, [promoted], secrets)
      await refused(target, /was written with the secret \w{8}, but KEYWAY_SECRET has \w{8}/, ...restore)
      rmSync(join(journal, sealed))
      assert.match(await done(keyway(target, ...restore)), /Restored 1 users/)
    })

    test('from files of versions that wrote no MACs, unless --unauthenticated accepts them', async t => {
      const { ann, file, target, journal } = await backUp(engine, t)
      const old = join(file, '..', 'old.keyway')
      toOldBackup(file, old)
      await refused(target, /not authenticated\. --unauthenticated .* administrators/, 'restore', old)
      const folder = join(journal, 'old')
      mkdirSync(folder)
      const today = new Date().toISOString().slice(0, 10)
      writeOldJournal(folder, today, [
        { type: 'opened', at: 1 },
        { type: 'user', at: Date.now(), id: ann.user.id, status: 'suspended' },
      ])
      const words = ['restore', file, '--journal', folder]
      await refused(target, /not authenticated\. .* --unauthenticated/, ...words)
      const told = await done(keyway(target, 'restore', old, '--journal', folder, '--unauthenticated'))
      assert.match(told, /Files without a MAC were accepted: check accounts/)
      const { data: users } = JSON.parse(await done(keyway(target, 'users', 'list', '--json')))
      assert.deepEqual(
        users.map((user: { status: string }) => user.status),
        ['suspended'],
      )
    })
  })

  describe('a restore or replay with the journal', () => {
    test('restores no replaced app secret, no removed app and no withdrawn role, and reports a possibly truncated end', async t => {
      const settings = await freshSettings(engine, t)
      const links = createPrintedLinks()
      const node = await startNode(t, settings, links)
      const leaked = await registerShop(node)
      const ann = await signIn(node.origin, links, 'ann@example.com')
      const { apps, users } = node.services
      const removed = await apps.register({
        id: 'removed',
        name: 'Removed',
        audience: 'https://removed.example.com',
      })
      const eve = await signIn(node.origin, links, 'eve@example.com')
      for (const { user } of [ann, eve]) await users.setRole(user.id, 'admin', BY_COMMAND_LINE)
      const file = join(settings.KEYWAY_DATA_DIR!, 'backup.keyway')
      await done(keyway(settings, 'backup', file))
      await users.setRole(ann.user.id, 'user', BY_COMMAND_LINE)
      const secrets = [(await apps.newSecret('shop')).secret, (await apps.newSecret('shop')).secret]
      await apps.remove('removed')
      await node.close()

      const target = await freshSettings(engine, t)
      const journal = settings.KEYWAY_JOURNAL_DIR!
      const report = JSON.parse(await done(keyway(target, 'restore', file, '--journal', journal, '--json')))
      const restored = await startNode(t, target, links)
      const introspect = async (secret: string) =>
        (
          await call(restored.origin, 'POST', '/auth/introspect', {
            body: { token: 'x' },
            headers: basic('shop', secret),
          })
        ).status
      assert.deepEqual(await Promise.all([leaked, ...secrets].map(introspect)), [401, 200, 200])
      const back = restored.services.apps
      assert.equal(await back.authenticate('removed', removed.secret!), null)
      assert.ok(!(await back.list()).some(({ id }) => id === 'removed'))
      assert.equal((await restored.services.users.get(ann.user.id))!.role, 'user')
      assert.deepEqual(
        { ...report.journal, applied: 0 },
        { applied: 0, unknown: 0, missing: null, open_ends: [] },
      )

      const name = namesIn(journal).at(-1)!
      const path = join(journal, name)
      truncateSync(path, linesOf(path).slice(0, -2).join('').length)
      const again = await freshSettings(engine, t)
      const told = await done(keyway(again, 'restore', file, '--journal', journal))
      assert.match(told, /Without a closing line: .*truncated/)
    })

    test('restores no withdrawn consent, but one that was given later', async t => {
      const settings = await freshSettings(engine, t)
      const links = createPrintedLinks()
      const node = await startNode(t, settings, links)
      const ann = await signIn(node.origin, links, 'ann@example.com')
      for (const id of ['withdrawn', 'again', 'later']) await node.services.apps.register({ id, name: id })
      for (const id of ['withdrawn', 'again']) await giveConsent(node, ann.user.id, id)
      const file = join(settings.KEYWAY_DATA_DIR!, 'backup.keyway')
      await done(keyway(settings, 'backup', file))
      const token = ann.access_token
      for (const id of ['withdrawn', 'again'])
        assert.equal((await call(node.origin, 'DELETE', `/v1/consents/${id}`, { token })).status, 204)
      for (const id of ['again', 'later']) await giveConsent(node, ann.user.id, id)
      const consentOf = (of: typeof node) => (id: string) =>
        of.services.storage.store.consents.find(ann.user.id, id)
      const given = await Promise.all(['withdrawn', 'again', 'later'].map(consentOf(node)))
      assert.notEqual(given[0]!.revokedAt, null)
      await node.close()

      const target = await freshSettings(engine, t)
      await done(keyway(target, 'restore', file, '--journal', settings.KEYWAY_JOURNAL_DIR!))
      const restored = await startNode(t, target, links)
      const kept = await Promise.all(['withdrawn', 'again', 'later'].map(consentOf(restored)))
      assert.deepEqual(kept, given)
    })
  })
})

test('refuses a forged line, and files without MACs unless --unauthenticated is given', async t => {
  const { settings, ann, journal, instance } = await backUp('sqlite', t)
  const suspended = { type: 'user', at: Date.now(), id: ann.user.id, status: 'suspended' } as const
  const [name = ''] = namesIn(journal)
  appendFileSync(join(journal, name), `${JSON.stringify(suspended)}\n`)
  const { status, err } = await keyway(settings, 'journal', 'replay')
  assert.deepEqual([status, /has no MAC\. Nothing was changed/.test(err)], [1, true], err)

  const folder = join(journal, 'old')
  mkdirSync(folder)
  writeOldJournal(folder, '2020-01-01', [{ type: 'opened', at: 1, instance }, suspended])
  const words = ['journal', 'replay', '--journal', folder]
  assert.match((await keyway(settings, ...words)).err, /not authenticated/)
  assert.match(await done(keyway(settings, ...words, '--unauthenticated')), /1 were missing/)
})
