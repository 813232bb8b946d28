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
import { keyway, outputOf } from '../support/command-line.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { basicAuthorization } from '../support/http.ts'
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
  await outputOf(keyway(settings, 'backup', file))
  const { serviceId } = node.services
  await node.close()
  const target = await freshSettings(engine, t)
  return { settings, links, ann, file, serviceId, target, journal: settings.KEYWAY_JOURNAL_DIR! }
}

/**
 * Expects that the command fails with status 1 and prints one line. Each test ends with a restore that succeeds, which
 * shows that the commands before it wrote nothing: it needs an empty database.
 */
async function expectRefusal(
  settings: Record<string, string>,
  expected: RegExp,
  ...words: string[]
): Promise<void> {
  const { status, err } = await keyway(settings, ...words)
  assert.equal(status, 1, `${words.join(' ')}: ${err}`)
  assert.match(err, expected)
  assert.equal(err.trim().split('\n').length, 1, err)
}

forEachEngine(engine => {
  describe('a restore is refused and writes nothing', () => {
    test('from a backup with a changed, added, removed or reordered row, or with another file name', async t => {
      const { file, target } = await backUp(engine, t)
      const forgeBackup = (change: (lines: string[]) => string[]) => changeBackup(file, file, change)
      const genuineCopy = `${file}.genuine`
      copyFileSync(file, genuineCopy)
      const changes: ((lines: string[]) => string[])[] = [
        lines => lines.map(line => line.replace('"role":"user"', '"role":"admin"')),
        lines => [...lines.slice(0, -1), lines[1]!.replace(/"id":"[^"]*"/, '"id":"0"'), lines.at(-1)!],
        lines => [lines[0]!, ...lines.slice(2)],
        lines => [lines[0]!, lines[2]!, lines[1]!, ...lines.slice(3)],
        lines => [lines[0]!.replace(/"created_at":\d+/, '"created_at":1'), ...lines.slice(1)],
      ]
      for (const change of changes) {
        forgeBackup(change)
        await expectRefusal(target, /was modified/, 'restore', file)
        copyFileSync(genuineCopy, file)
      }
      const renamedFile = file.replace('monday', 'tuesday')
      copyFileSync(genuineCopy, renamedFile)
      await expectRefusal(target, /tuesday.keyway was written as "monday.keyway" at/, 'restore', renamedFile)
      await expectRefusal(
        { ...target, KEYWAY_SECRET: OTHER_SECRET },
        /with the secret \w{8}, but KEYWAY_SECRET has \w{8}\./,
        'restore',
        file,
      )
      const targetWithBothSecrets = { ...target, KEYWAY_SECRET: `${OTHER_SECRET},${NODE_SECRET}` }
      assert.match(await outputOf(keyway(targetWithBothSecrets, 'restore', file)), /1 users/)
    })

    test('from a journal with a forged, changed, moved or missing line or file', async t => {
      const { ann, file, target, journal, serviceId } = await backUp(engine, t)
      const promotion = {
        type: 'user',
        at: Date.now(),
        id: ann.user.id,
        status: 'active',
        role: 'admin',
      } as const
      const earlierFile = await writeJournal(journal, serviceId, [
        { type: 'session', at: Date.now(), id: 'a', ended_by: 'logout' },
        { type: 'session', at: Date.now(), id: 'b', ended_by: 'logout' },
      ])
      await writeJournal(journal, serviceId, [
        { type: 'session', at: Date.now(), id: 'c', ended_by: 'logout' },
      ])
      const path = join(journal, earlierFile)
      const lines = linesOf(path)
      const [head = '', first = '', second = '', closingLine = ''] = lines
      const [laterFile = ''] = namesIn(journal).filter(name => name !== earlierFile)
      const foreignLine = linesOf(join(journal, laterFile)).at(-1)!

      const restoreArgs = ['restore', file, '--journal', journal]
      const expectRefusedText = async (text: string, expected: RegExp) => {
        writeFileSync(path, text)
        await expectRefusal(target, expected, ...restoreArgs)
        writeFileSync(path, lines.join(''))
      }
      const wrongMacMessage = /has a wrong MAC/
      await expectRefusedText(`${lines.join('')}${JSON.stringify(promotion)}\n`, /Line 5 .* has no MAC/)
      await expectRefusedText(
        [head, first.replace('"a"', '"x"'), second, closingLine].join(''),
        wrongMacMessage,
      )
      await expectRefusedText([head, second, closingLine].join(''), wrongMacMessage)
      await expectRefusedText([head, second, first, closingLine].join(''), wrongMacMessage)
      await expectRefusedText([head, first, foreignLine].join(''), wrongMacMessage)
      await expectRefusedText([first, second].join(''), wrongMacMessage)
      await expectRefusedText([head, first].join(''), /incomplete: .* is truncated/)
      await expectRefusedText(`${head}${first}${'x'.repeat(5000)}`, /incomplete: .* is truncated/)
      await expectRefusedText(`${head}${'x'.repeat(100_000)}\n`, /Line 2 .* is too long/)

      const movedPath = join(journal, '..', earlierFile)
      renameSync(path, movedPath)
      await expectRefusal(target, /incomplete: .* is missing/, ...restoreArgs)
      renameSync(movedPath, join(journal, `2030-01-01-000000000000.v2.ndjson`))
      await expectRefusal(target, /has another name here/, ...restoreArgs)
      renameSync(join(journal, `2030-01-01-000000000000.v2.ndjson`), path)

      const fileOfOtherService = await writeJournal(journal, '0123456789abcdef', [promotion])
      await expectRefusal(target, /of another service \(0123456789abcdef/, ...restoreArgs)
      rmSync(join(journal, fileOfOtherService))
      const secrets = createSecrets([Buffer.from(OTHER_SECRET, 'base64')])
      const fileOfOtherSecret = await writeJournal(journal, serviceId, [promotion], secrets)
      await expectRefusal(
        target,
        /was written with the secret \w{8}, but KEYWAY_SECRET has \w{8}/,
        ...restoreArgs,
      )
      rmSync(join(journal, fileOfOtherSecret))
      assert.match(await outputOf(keyway(target, ...restoreArgs)), /Restored 1 users/)
    })

    test('from files of versions that wrote no MACs, unless --unauthenticated accepts them', async t => {
      const { ann, file, target, journal } = await backUp(engine, t)
      const oldBackup = join(file, '..', 'old.keyway')
      toOldBackup(file, oldBackup)
      await expectRefusal(
        target,
        /not authenticated\. --unauthenticated .* administrators/,
        'restore',
        oldBackup,
      )
      const folder = join(journal, 'old')
      mkdirSync(folder)
      const today = new Date().toISOString().slice(0, 10)
      writeOldJournal(folder, today, [
        { type: 'opened', at: 1 },
        { type: 'user', at: Date.now(), id: ann.user.id, status: 'suspended' },
      ])
      const restoreArgs = ['restore', file, '--journal', folder]
      await expectRefusal(target, /not authenticated\. .* --unauthenticated/, ...restoreArgs)
      const output = await outputOf(
        keyway(target, 'restore', oldBackup, '--journal', folder, '--unauthenticated'),
      )
      assert.match(output, /Files without a MAC were accepted: check accounts/)
      const { data: users } = JSON.parse(await outputOf(keyway(target, 'users', 'list', '--json')))
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
      const replacedSecret = await registerShop(node)
      const ann = await signIn(node.origin, links, 'ann@example.com')
      const { apps, users } = node.services
      const removedApp = await apps.register({
        id: 'removed',
        name: 'Removed',
        audience: 'https://removed.example.com',
      })
      const eve = await signIn(node.origin, links, 'eve@example.com')
      for (const { user } of [ann, eve]) await users.setRole(user.id, 'admin', BY_COMMAND_LINE)
      const file = join(settings.KEYWAY_DATA_DIR!, 'backup.keyway')
      await outputOf(keyway(settings, 'backup', file))
      await users.setRole(ann.user.id, 'user', BY_COMMAND_LINE)
      const secrets = [(await apps.newSecret('shop')).secret, (await apps.newSecret('shop')).secret]
      await apps.remove('removed')
      await node.close()

      const target = await freshSettings(engine, t)
      const journal = settings.KEYWAY_JOURNAL_DIR!
      const report = JSON.parse(
        await outputOf(keyway(target, 'restore', file, '--journal', journal, '--json')),
      )
      const restoredNode = await startNode(t, target, links)
      const introspect = async (secret: string) =>
        (
          await call(restoredNode.origin, 'POST', '/auth/introspect', {
            body: { token: 'x' },
            headers: basicAuthorization('shop', secret),
          })
        ).status
      assert.deepEqual(await Promise.all([replacedSecret, ...secrets].map(introspect)), [401, 200, 200])
      const restoredApps = restoredNode.services.apps
      assert.equal(await restoredApps.authenticate('removed', removedApp.secret!), null)
      assert.ok(!(await restoredApps.list()).some(({ id }) => id === 'removed'))
      assert.equal((await restoredNode.services.users.get(ann.user.id))!.role, 'user')
      assert.deepEqual(
        { ...report.journal, applied: 0 },
        { applied: 0, unknown: 0, missing: null, open_ends: [] },
      )

      const name = namesIn(journal).at(-1)!
      const path = join(journal, name)
      truncateSync(path, linesOf(path).slice(0, -2).join('').length)
      const secondTarget = await freshSettings(engine, t)
      const output = await outputOf(keyway(secondTarget, 'restore', file, '--journal', journal))
      assert.match(output, /Without a closing line: .*truncated/)
    })

    test('restores no withdrawn consent, but one that was given later', async t => {
      const settings = await freshSettings(engine, t)
      const links = createPrintedLinks()
      const node = await startNode(t, settings, links)
      const ann = await signIn(node.origin, links, 'ann@example.com')
      for (const id of ['withdrawn', 'again', 'later']) await node.services.apps.register({ id, name: id })
      for (const id of ['withdrawn', 'again']) await giveConsent(node, ann.user.id, id)
      const file = join(settings.KEYWAY_DATA_DIR!, 'backup.keyway')
      await outputOf(keyway(settings, 'backup', file))
      const token = ann.access_token
      for (const id of ['withdrawn', 'again'])
        assert.equal((await call(node.origin, 'DELETE', `/v1/consents/${id}`, { token })).status, 204)
      for (const id of ['again', 'later']) await giveConsent(node, ann.user.id, id)
      const consentOf = (of: typeof node) => (id: string) =>
        of.services.storage.store.consents.find(ann.user.id, id)
      const consentsBefore = await Promise.all(['withdrawn', 'again', 'later'].map(consentOf(node)))
      assert.notEqual(consentsBefore[0]!.revokedAt, null)
      await node.close()

      const target = await freshSettings(engine, t)
      await outputOf(keyway(target, 'restore', file, '--journal', settings.KEYWAY_JOURNAL_DIR!))
      const restoredNode = await startNode(t, target, links)
      const restoredConsents = await Promise.all(['withdrawn', 'again', 'later'].map(consentOf(restoredNode)))
      assert.deepEqual(restoredConsents, consentsBefore)
    })
  })
})

test('refuses a forged line, and files without MACs unless --unauthenticated is given', async t => {
  const { settings, ann, journal, serviceId } = await backUp('sqlite', t)
  const suspension = { type: 'user', at: Date.now(), id: ann.user.id, status: 'suspended' } as const
  const [name = ''] = namesIn(journal)
  appendFileSync(join(journal, name), `${JSON.stringify(suspension)}\n`)
  const { status, err } = await keyway(settings, 'journal', 'replay')
  assert.deepEqual([status, /has no MAC\. Nothing was changed/.test(err)], [1, true], err)

  const folder = join(journal, 'old')
  mkdirSync(folder)
  writeOldJournal(folder, '2020-01-01', [{ type: 'opened', at: 1, instance: serviceId }, suspension])
  const replayArgs = ['journal', 'replay', '--journal', folder]
  assert.match((await keyway(settings, ...replayArgs)).err, /not authenticated/)
  assert.match(await outputOf(keyway(settings, ...replayArgs, '--unauthenticated')), /1 were missing/)
})
