import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import type { JournalEntry } from '../../src/backup/journal-entry.ts'
import { MICROS_PER_DOLLAR } from '../../src/billing/money.ts'
import { REPLAY_KINDS } from '../../src/operations/replay-report.ts'
import { OperatorError } from '../../src/operator-error.ts'
import { keyway, outputOf } from '../support/command-line.ts'
import { postgresMissing } from '../support/engines.ts'
import { call, exchange, signIn, startNode, verifyLink } from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { charge, giveConsent, type ReplayAnswer, replayInProcess, settingsWithFolder } from './commands.ts'
import { namesIn, writeJournal } from './files.ts'
import { connect, loseLastTransactions, me, rowsOf } from './lost-transactions.ts'
import type { Loss } from './rewind.ts'

const SQLITE: Loss = 'a copied SQLite file'

for (const loss of [SQLITE, 'an asynchronous failover'] satisfies Loss[]) {
  const skip = loss !== SQLITE && postgresMissing()
  describe(`after ${loss}`, { skip }, () => {
    test('journal replay re-applies lost endings and closes connections on every node, and repeating it changes nothing', async t => {
      const lostState = await loseLastTransactions(loss, t)
      const {
        settings,
        ann,
        keys,
        bob,
        cat,
        dan,
        eve,
        unused,
        invitation,
        links,
        secret,
        replacedSecret,
        beforeLoss,
      } = lostState
      const journal = settings.KEYWAY_JOURNAL_DIR!
      const nodes = [await startNode(t, settings, links)]
      if (loss !== SQLITE) nodes.push(await startNode(t, settings, links))
      const { origin, services } = nodes[0]!
      const token = ann.access_token

      // Before the replay none of the lost changes is in effect.
      const revivedKeys = [keys.revoked, keys.networkRestricted, bob.key, cat.key]
      const closingConnections = await Promise.all(
        nodes.flatMap(node => revivedKeys.map(key => connect(node, key))),
      )
      const keptConnections = await Promise.all(nodes.map(node => connect(node, keys.untouched)))
      assert.equal((await me(origin, dan.access_token)).status, 200)
      const { consents } = services.storage.store
      assert.equal((await consents.find(ann.user.id, 'shop'))!.revokedAt, null)
      assert.equal((await services.apps.authenticate('press', replacedSecret))?.id, 'press')
      assert.equal((await services.users.get(dan.user.id))!.role, 'admin')

      const rowsBefore = await rowsOf(settings)
      const { data: planned } = await replayInProcess(services, journal, true)
      assert.deepEqual(await rowsOf(settings), rowsBefore, 'a dry run changes nothing')
      const report = JSON.parse(await outputOf(keyway(settings, 'journal', 'replay', '--json')))
      assert.deepEqual({ ...planned, dry_run: false }, report, 'and reports what the run then does')
      assert.deepEqual(report.left, [])
      assert.deepEqual(replayedCountsOf(report), {
        roles: 1,
        deletions: 2, // One request and one cancellation.
        app_secrets: 2, // Of the app whose secret was replaced, and of the app that was removed.
        consents: 1,
        policies: 1,
        invitations: 1,
        api_keys: 4, // One revoked, one rotated, one with restricted networks, and one of the deleted account.
        users: 2,
        sessions: 3, // One that was logged out, and those of the suspended and of the deleted account.
        magic_links: 1,
        charge_authorizations: 1,
        ledger_entries: 2,
        trial_credits: 1,
      })

      for (const each of nodes)
        await until(
          'the policies are back',
          () => each.services.policies.current().defaultKeyLifetimeDays === 7,
        )
      const codes = await Promise.all(closingConnections.map(async ({ closed }) => (await closed).code))
      assert.deepEqual(
        codes,
        nodes.flatMap(() => [4410, 4403, 4403, 4410]),
      )
      for (const { socket } of keptConnections) {
        assert.equal(socket.readyState, socket.OPEN)
        socket.terminate()
      }
      const refusals = await Promise.all(
        revivedKeys.map(async ({ key }) => (await exchange(origin, key)).body.code),
      )
      assert.deepEqual(refusals, [
        'api_key_revoked',
        'network_not_allowed',
        'account_suspended',
        'api_key_revoked',
      ])
      assert.equal((await me(origin, dan.access_token)).status, 401)
      assert.notEqual((await services.storage.store.invitations.find(invitation))!.revokedAt, null)
      assert.equal((await verifyLink(origin, 'dan@example.com', unused)).body.code, 'magic_link_used')

      assert.equal(await services.apps.authenticate('press', replacedSecret), null)
      assert.ok(!(await services.apps.list()).some(({ id }) => id === 'wire'))
      assert.equal((await services.users.get(dan.user.id))!.role, 'user')

      // All changes have their original times.
      const account = (await me(origin, token)).body
      assert.equal(account.balance.amount, '1.80')
      assert.deepEqual(account.charge_authorizations, beforeLoss.account.charge_authorizations)
      assert.equal(account.deletes_at, beforeLoss.account.deletes_at)
      assert.equal((await services.users.get(eve.user.id))!.deletesAt, null)
      assert.deepEqual(await consents.find(ann.user.id, 'shop'), beforeLoss.consent)
      const ledger = await call(origin, 'GET', '/v1/me/ledger', { token })
      assert.deepEqual(ledger.body.data, beforeLoss.ledger)
      const spentOfKeys = await services.storage.store.billing.spentOf([keys.untouched.id])
      assert.equal(spentOfKeys.get(keys.untouched.id)?.daySpent, MICROS_PER_DOLLAR / 10)
      const repeatedCharge = await charge(
        origin,
        secret,
        ann.user.id,
        'lost-charge-0',
        '0.10',
        keys.untouched.id,
      )
      assert.deepEqual(
        repeatedCharge.body,
        beforeLoss.charged,
        'an app that repeats its charge gets the same entry',
      )
      const revokedKey = await call(origin, 'GET', `/v1/api-keys/${keys.revoked.id}`, { token })
      assert.equal(revokedKey.body.revoked_at, beforeLoss.revokedAt)
      const rotatedKey = await call(origin, 'GET', `/v1/api-keys/${keys.rotated.id}`, { token })
      assert.equal(rotatedKey.body.expires_at, beforeLoss.expiresAt)
      const fay = await signIn(origin, links, 'fay@example.com')
      const faysAccount = (await me(origin, fay.access_token)).body
      assert.equal(faysAccount.balance.amount, '0.00', 'her address got its trial credit in the lost time')

      const rowsAfter = await rowsOf(settings)
      const secondReplay = await replayInProcess(services, journal)
      assert.match(secondReplay.text, /The database has all of them/)
      assert.deepEqual(await rowsOf(settings), rowsAfter)
    })
  })
}

for (const loss of [SQLITE, 'a PostgreSQL snapshot'] satisfies Loss[]) {
  const skip = loss !== SQLITE && postgresMissing()
  describe(`with new changes since ${loss} was restored`, { skip }, () => {
    test('two concurrent replays overwrite no newer change, and report what the operator must decide', async t => {
      const lostState = await loseLastTransactions(loss, t)
      const { ann, keys, bob, secret } = lostState
      const token = ann.access_token
      const journal = lostState.settings.KEYWAY_JOURNAL_DIR!
      // Further changes go to a new journal, which is not replayed.
      const settings = { ...lostState.settings, KEYWAY_JOURNAL_DIR: join(journal, '..', 'newer') }
      const node = await startNode(t, settings)
      const { origin, services } = node
      await services.users.suspend(bob.user.id, BY_COMMAND_LINE)
      await services.users.activate(bob.user.id, BY_COMMAND_LINE)
      const authorizationPath = '/v1/me/charge-authorizations/console'
      await call(origin, 'DELETE', authorizationPath, { token })
      await call(origin, 'PUT', authorizationPath, { token })
      await call(origin, 'DELETE', '/v1/consents/shop', { token })
      await giveConsent(node, ann.user.id, 'shop')
      const networks = { allowed_networks: ['127.0.0.0/8', '::1/128'] }
      await call(origin, 'PATCH', `/v1/api-keys/${keys.networkRestricted.id}`, { token, body: networks })
      assert.equal((await charge(origin, secret, ann.user.id, 'newer-charge', '1.85')).status, 201)
      const oldEntry = {
        type: 'api_key' as const,
        at: Date.parse('2020-01-01T00:00:00Z'),
        id: keys.untouched.id,
        revoked_at: null,
        expires_at: null,
        allowed_networks: ['192.0.2.0/24'],
      }
      await writeJournal(journal, services.serviceId, [oldEntry])

      const replays = await Promise.all([
        replayInProcess(services, journal),
        replayInProcess(services, journal),
      ])
      for (const { status, data, text } of replays) {
        assert.equal(status, 1, 'something is left for the operator to decide')
        assert.deepEqual(
          data.left.map(({ kind, reason }) => [kind, reason]),
          [
            ['api_keys', 'networks_undated'],
            ['ledger_entries', 'not_covered'],
          ],
        )
        assert.equal(data.left[0]!.id, keys.untouched.id)
        assert.match(text, /Left: the ledger entry .* balance no longer covers it/)
      }
      const [firstReplayed, secondReplayed] = replays.map(({ data }) => replayedCountsOf(data))
      assert.equal(firstReplayed!.api_keys! + secondReplayed!.api_keys!, 3)
      assert.equal(
        firstReplayed!.sessions! + secondReplayed!.sessions!,
        2,
        'the session of bob was ended by his suspension',
      )
      assert.equal(
        firstReplayed!.ledger_entries! + secondReplayed!.ledger_entries!,
        1,
        'one of two charges is covered',
      )
      assert.equal(replays[0].data.counts.charge_authorizations.standing, 1)
      assert.equal(replays[0].data.counts.consents.standing, 1)

      const codes = await Promise.all(
        [keys.revoked, bob.key, keys.networkRestricted, keys.untouched].map(
          async ({ key }) => (await exchange(origin, key)).body.code ?? 'works',
        ),
      )
      assert.deepEqual(codes, ['api_key_revoked', 'works', 'works', 'works'])
      const account = (await me(origin, token)).body
      assert.equal(account.balance.amount, '0.05')
      const authorizations: { app_id: string; revoked_at: string | null }[] = account.charge_authorizations
      assert.equal(authorizations.find(each => each.app_id === 'console')?.revoked_at, null)
    })
  })
}

describe('a replay is refused and changes nothing', () => {
  test('with a missing or corrupt journal, or one of another service or a newer version', async t => {
    const settings = settingsWithFolder(t)
    const { services } = await startNode(t, settings)
    const journal = settings.KEYWAY_JOURNAL_DIR!
    const folder = join(journal, 'other')
    mkdirSync(folder)
    const expectRefusal = (expected: RegExp, path = folder) =>
      assert.rejects(replayInProcess(services, path), (error: Error) => {
        assert.ok(error instanceof OperatorError)
        assert.match(error.message, expected)
        return true
      })
    await expectRefusal(/no journal in .* KEYWAY_JOURNAL_DIR/)
    await expectRefusal(/cannot be read \(ENOENT\).*KEYWAY_JOURNAL_DIR/, join(journal, 'nowhere'))
    const refusedCommand = await keyway(settings, 'journal', 'replay', '--journal', folder)
    assert.deepEqual([refusedCommand.status, refusedCommand.err.trim().split('\n').length], [1, 1])

    const writeEntry = async (entry: object, serviceId = services.serviceId) => {
      for (const name of namesIn(folder)) rmSync(join(folder, name))
      await writeJournal(folder, serviceId, [entry as JournalEntry])
    }
    await writeEntry([])
    await expectRefusal(/^Line 2 of .*not a journal entry.*Nothing was changed/)
    await writeEntry({ type: 'user', at: 1, id: '0' })
    await expectRefusal(/^Line 2 of .*"user" without a valid "status"/)
    await writeEntry({ type: 'robot', at: 1 })
    await expectRefusal(/"robot", which this version does not know/)
    await writeEntry({ type: 'user', at: 1, id: '0', status: 'active' }, '0123456789abcdef')
    await expectRefusal(/of another service \(0123456789abcdef; this one is \w{16}\)/)
  })
})

test('a replay skips a last line that a crash truncated, and counts missing rows', async t => {
  const settings = settingsWithFolder(t)
  const { services } = await startNode(t, settings)
  const journal = settings.KEYWAY_JOURNAL_DIR!
  const entries: JournalEntry[] = [
    { type: 'api_key', at: 1, id: '0', revoked_at: 1, expires_at: null, allowed_networks: [] },
    { type: 'user', at: 1, id: '0', status: 'suspended' },
    { type: 'session', at: 1, id: '0', ended_by: 'logout' },
    { type: 'magic_link', at: 1, id: '0' },
  ]
  const name = await writeJournal(journal, services.serviceId, entries)
  appendFileSync(join(journal, name), '{"type":"us')
  const { status, data } = await replayInProcess(services, journal)
  assert.equal(status, 0)
  const kindsWithMissingRow = REPLAY_KINDS.filter(kind => data.counts[kind].gone === 1)
  assert.deepEqual([data.entries, kindsWithMissingRow], [4, ['api_keys', 'users', 'sessions', 'magic_links']])
})

function replayedCountsOf({ counts }: ReplayAnswer): Record<string, number> {
  return Object.fromEntries(REPLAY_KINDS.map(kind => [kind, counts[kind].replayed]))
}
