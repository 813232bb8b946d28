import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import type { JournalEntry } from '../../src/backup/journal-entry.ts'
import { MICROS_PER_DOLLAR } from '../../src/billing/money.ts'
import { REPLAY_KINDS } from '../../src/operations/replay-report.ts'
import { OperatorError } from '../../src/operator-error.ts'
import { done, keyway } from '../support/command-line.ts'
import { postgresMissing } from '../support/engines.ts'
import { call, exchange, signIn, startNode, verifyLink } from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { charge, giveConsent, type ReplayAnswer, replayHere, settingsOfFolder } from './commands.ts'
import { namesIn, writeJournal } from './files.ts'
import { connect, loseLastTransactions, me, rowsOf } from './lost-transactions.ts'
import type { Loss } from './rewind.ts'

const SQLITE: Loss = 'a copied SQLite file'

for (const loss of [SQLITE, 'an asynchronous failover'] satisfies Loss[]) {
  const skip = loss !== SQLITE && postgresMissing()
  describe(`after ${loss}`, { skip }, () => {
    test('journal replay re-applies lost endings and closes connections on every node, and repeating it changes nothing', async t => {
      const lostState = await loseLastTransactions(loss, t)
      const { settings, ann, keys, bob, cat, dan, eve, unused, invitation, links, secret, leaked, lost } =
        lostState
      const journal = settings.KEYWAY_JOURNAL_DIR!
      const nodes = [await startNode(t, settings, links)]
      if (loss !== SQLITE) nodes.push(await startNode(t, settings, links))
      const { origin, services } = nodes[0]!
      const token = ann.access_token

      // The lost revocations are undone before the replay.
      const revived = [keys.revoked, keys.elsewhere, bob.key, cat.key]
      const dying = await Promise.all(nodes.flatMap(node => revived.map(key => connect(node, key))))
      const living = await Promise.all(nodes.map(node => connect(node, keys.untouched)))
      assert.equal((await me(origin, dan.access_token)).status, 200)
      const { consents } = services.storage.store
      assert.equal((await consents.find(ann.user.id, 'shop'))!.revokedAt, null)
      assert.equal((await services.apps.authenticate('press', leaked))?.id, 'press')
      assert.equal((await services.users.get(dan.user.id))!.role, 'admin')

      const stood = await rowsOf(settings)
      const { data: planned } = await replayHere(services, journal, true)
      assert.deepEqual(await rowsOf(settings), stood, 'a dry run changes nothing')
      const replayed = JSON.parse(await done(keyway(settings, 'journal', 'replay', '--json')))
      assert.deepEqual({ ...planned, dry_run: false }, replayed, 'and tells what the run then does')
      assert.deepEqual(replayed.left, [])
      assert.deepEqual(replayedOf(replayed), {
        roles: 1,
        deletions: 2, // One request and one cancellation.
        app_secrets: 2, // of the one whose secret was replaced, and of the one that was removed
        consents: 1,
        policies: 1,
        invitations: 1,
        api_keys: 4, // revoked, rotated, from elsewhere, and of the account that was deleted
        users: 2,
        sessions: 3, // that one, and those of the accounts
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
      const codes = await Promise.all(dying.map(async ({ closed }) => (await closed).code))
      assert.deepEqual(
        codes,
        nodes.flatMap(() => [4410, 4403, 4403, 4410]),
      )
      for (const { socket } of living) {
        assert.equal(socket.readyState, socket.OPEN)
        socket.terminate()
      }
      const refusals = await Promise.all(
        revived.map(async ({ key }) => (await exchange(origin, key)).body.code),
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

      assert.equal(await services.apps.authenticate('press', leaked), null)
      assert.ok(!(await services.apps.list()).some(({ id }) => id === 'wire'))
      assert.equal((await services.users.get(dan.user.id))!.role, 'user')

      // All changes have their original times.
      const account = (await me(origin, token)).body
      assert.equal(account.balance.amount, '1.80')
      assert.deepEqual(account.charge_authorizations, lost.account.charge_authorizations)
      assert.equal(account.deletes_at, lost.account.deletes_at)
      assert.equal((await services.users.get(eve.user.id))!.deletesAt, null)
      assert.deepEqual(await consents.find(ann.user.id, 'shop'), lost.consent)
      const ledger = await call(origin, 'GET', '/v1/me/ledger', { token })
      assert.deepEqual(ledger.body.data, lost.ledger)
      const spent = await services.storage.store.billing.spentOf([keys.untouched.id])
      assert.equal(spent.get(keys.untouched.id)?.daySpent, MICROS_PER_DOLLAR / 10)
      const again = await charge(origin, secret, ann.user.id, 'lost-charge-0', '0.10', keys.untouched.id)
      assert.deepEqual(again.body, lost.charged, 'an app that repeats its charge gets the same entry')
      const revoked = await call(origin, 'GET', `/v1/api-keys/${keys.revoked.id}`, { token })
      assert.equal(revoked.body.revoked_at, lost.revokedAt)
      const rotated = await call(origin, 'GET', `/v1/api-keys/${keys.rotated.id}`, { token })
      assert.equal(rotated.body.expires_at, lost.expiresAt)
      const fay = await signIn(origin, links, 'fay@example.com')
      const hers = (await me(origin, fay.access_token)).body
      assert.equal(hers.balance.amount, '0.00', 'her address had its credit')

      const ended = await rowsOf(settings)
      const twice = await replayHere(services, journal)
      assert.match(twice.text, /The database has all of them/)
      assert.deepEqual(await rowsOf(settings), ended)
    })
  })
}

for (const loss of [SQLITE, 'a PostgreSQL snapshot'] satisfies Loss[]) {
  const skip = loss !== SQLITE && postgresMissing()
  describe(`with new changes after ${loss} came back`, { skip }, () => {
    test('two concurrent replays overwrite no newer change, and report what the operator must decide', async t => {
      const lost = await loseLastTransactions(loss, t)
      const { ann, keys, bob, secret } = lost
      const token = ann.access_token
      const journal = lost.settings.KEYWAY_JOURNAL_DIR!
      // Further changes go to a new journal, which is not replayed.
      const settings = { ...lost.settings, KEYWAY_JOURNAL_DIR: join(journal, '..', 'newer') }
      const node = await startNode(t, settings)
      const { origin, services } = node
      await services.users.suspend(bob.user.id, BY_COMMAND_LINE)
      await services.users.activate(bob.user.id, BY_COMMAND_LINE)
      const authorization = '/v1/me/charge-authorizations/console'
      await call(origin, 'DELETE', authorization, { token })
      await call(origin, 'PUT', authorization, { token })
      await call(origin, 'DELETE', '/v1/consents/shop', { token })
      await giveConsent(node, ann.user.id, 'shop')
      const networks = { allowed_networks: ['127.0.0.0/8', '::1/128'] }
      await call(origin, 'PATCH', `/v1/api-keys/${keys.elsewhere.id}`, { token, body: networks })
      assert.equal((await charge(origin, secret, ann.user.id, 'newer-charge', '1.85')).status, 201)
      const longAgo = {
        type: 'api_key' as const,
        at: Date.parse('2020-01-01T00:00:00Z'),
        id: keys.untouched.id,
        revoked_at: null,
        expires_at: null,
        allowed_networks: ['192.0.2.0/24'],
      }
      await writeJournal(journal, services.instance, [longAgo])

      const both = await Promise.all([replayHere(services, journal), replayHere(services, journal)])
      for (const { status, data, text } of both) {
        assert.equal(status, 1, 'something is left')
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
      const [one, other] = both.map(({ data }) => replayedOf(data))
      assert.equal(one!.api_keys! + other!.api_keys!, 3)
      assert.equal(one!.sessions! + other!.sessions!, 2, 'the session of bob was ended by his suspension')
      assert.equal(one!.ledger_entries! + other!.ledger_entries!, 1, 'one of two charges is covered')
      assert.equal(both[0].data.counts.charge_authorizations.standing, 1)
      assert.equal(both[0].data.counts.consents.standing, 1)

      const codes = await Promise.all(
        [keys.revoked, bob.key, keys.elsewhere, keys.untouched].map(
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
    const settings = settingsOfFolder(t)
    const { services } = await startNode(t, settings)
    const journal = settings.KEYWAY_JOURNAL_DIR!
    const folder = join(journal, 'other')
    mkdirSync(folder)
    const refused = (because: RegExp, at = folder) =>
      assert.rejects(replayHere(services, at), (error: Error) => {
        assert.ok(error instanceof OperatorError)
        assert.match(error.message, because)
        return true
      })
    await refused(/no journal in .* KEYWAY_JOURNAL_DIR/)
    await refused(/cannot be read \(ENOENT\).*KEYWAY_JOURNAL_DIR/, join(journal, 'nowhere'))
    const said = await keyway(settings, 'journal', 'replay', '--journal', folder)
    assert.deepEqual([said.status, said.err.trim().split('\n').length], [1, 1])

    const write = async (entry: object, instance = services.instance) => {
      for (const name of namesIn(folder)) rmSync(join(folder, name))
      await writeJournal(folder, instance, [entry as JournalEntry])
    }
    await write([])
    await refused(/^Line 2 of .*not a journal entry.*Nothing was changed/)
    await write({ type: 'user', at: 1, id: '0' })
    await refused(/^Line 2 of .*"user" without a valid "status"/)
    await write({ type: 'robot', at: 1 })
    await refused(/"robot", which this version does not know/)
    await write({ type: 'user', at: 1, id: '0', status: 'active' }, '0123456789abcdef')
    await refused(/of another service \(0123456789abcdef; this one is \w{16}\)/)
  })

  test('a last line that a crash truncated is skipped, and missing rows are counted', async t => {
    const settings = settingsOfFolder(t)
    const { services } = await startNode(t, settings)
    const journal = settings.KEYWAY_JOURNAL_DIR!
    const entries: JournalEntry[] = [
      { type: 'api_key', at: 1, id: '0', revoked_at: 1, expires_at: null, allowed_networks: [] },
      { type: 'user', at: 1, id: '0', status: 'suspended' },
      { type: 'session', at: 1, id: '0', ended_by: 'logout' },
      { type: 'magic_link', at: 1, id: '0' },
    ]
    const name = await writeJournal(journal, services.instance, entries)
    appendFileSync(join(journal, name), '{"type":"us')
    const { status, data } = await replayHere(services, journal)
    assert.equal(status, 0)
    const gone = REPLAY_KINDS.filter(kind => data.counts[kind].gone === 1)
    assert.deepEqual([data.entries, gone], [4, ['api_keys', 'users', 'sessions', 'magic_links']])
  })
})

function replayedOf({ counts }: ReplayAnswer): Record<string, number> {
  return Object.fromEntries(REPLAY_KINDS.map(kind => [kind, counts[kind].replayed]))
}
