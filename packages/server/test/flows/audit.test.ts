import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { type ActedBy, auditedOutcome, BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import type { AuditChange } from '../../src/audit/audit-event.ts'
import { createAuditKeeping } from '../../src/audit/audit-keeping.ts'
import { verifyAudit } from '../../src/audit/audit-verification.ts'
import { canonicalJson } from '../../src/audit/canonical-json.ts'
import { DAY } from '../../src/clock.ts'
import { NO_LIMITS } from '../../src/limits/limit.ts'
import { createSecrets } from '../../src/secrets.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, refusedWith } from '../support/services.ts'

const FIRST_PAGE = { limit: 100, after: null }
const REASON = 'asked for by Ada Lovelace, ada@example.com'

async function openAudited(engine: EngineName, t: TestContext) {
  const services = await openServices(engine, t)
  const admin = await services.signIn('admin@example.com')
  await services.users.setRole(admin.user.id, 'admin')
  const ada = await services.signIn('ada@example.com')
  const by = (reason: string | null = null): ActedBy => ({
    actor: { type: 'user', id: admin.user.id, key_id: null, session_id: admin.session.id },
    caller: caller('198.51.100.7'),
    requestId: 'req-1',
    reason,
  })
  const { audit } = services.store
  const rows = async (filter = {}) => (await audit.list(filter, FIRST_PAGE)).rows
  const verdict = () => verifyAudit(services)
  const events = async (userId: string) =>
    (await services.store.securityEvents.list(userId, FIRST_PAGE)).rows.map(({ type }) => type)
  const sql = (text: string) => services.opened.storage.engine.connection.execute(text, [])
  return { ...services, admin, ada, by, rows, verdict, events, sql }
}

function copyOfRow4(sequence: number): string {
  return `insert into audit_events select ${sequence}, id, at, type, actor_id, actor, subject_id, user_id, subject,
    before_state, after_state, reason_hash, network, request_id, previous_hash, hash from audit_events where sequence = 4`
}

forEachEngine(engine => {
  test('an act is recorded with who, what, whom, before, after, reason, network and request', async t => {
    const { users, ada, admin, by, rows, events, clock } = await openAudited(engine, t)
    await users.suspend(ada.user.id, by(REASON))
    const [row] = await rows()
    assert.deepEqual(
      { ...row, id: null, hash: null, previousHash: null, reason: row!.reason!.text },
      {
        id: null,
        sequence: 2,
        at: clock.now(),
        actor: { type: 'user', id: admin.user.id, key_id: null, session_id: admin.session.id },
        subject: { type: 'user', id: ada.user.id, user_id: ada.user.id },
        type: 'user.suspended',
        before: { status: 'active' },
        after: { status: 'suspended' },
        reason: REASON,
        network: caller('198.51.100.7').network,
        requestId: 'req-1',
        hash: null,
        previousHash: null,
      },
    )
    assert.ok((await events(ada.user.id)).includes('account_suspended'))
    await users.suspend(ada.user.id, by(REASON))
    assert.equal((await rows()).length, 2, 'what changes nothing is not recorded')
    assert.equal(await refusedWith(users.setRole(admin.user.id, 'user', by())), 'last_administrator')
    assert.equal((await rows()).length, 2, 'nor is a refusal')
  })

  test('every kind of act is recorded, without addresses, names and secrets, and shown to the person', async t => {
    const services = await openAudited(engine, t)
    const { users, apiKeys, magicLinks, sessions, credits, suppressions, admin, ada, by, rows, events } =
      services
    const { id } = ada.user
    const newKey = { name: 'Secret laptop', scopes: null, expiresAt: null, appId: 'x', allowedNetworks: [] }
    const createdKey = await apiKeys.create(id, newKey, caller())
    const { apiKey } = createdKey
    await users.renameBy(id, 'Ada Lovelace', by())
    await users.setRole(id, 'support', by())
    await magicLinks.clearLimits(address('ada@example.com'), by())
    const [session] = (await sessions.list(id, { limit: 1, after: null })).rows
    for (let time = 0; time < 2; time++) await sessions.endOne(id, session!.id, by())
    const sessionOfAdmin = (await sessions.list(admin.user.id, { limit: 1, after: null })).rows[0]!.id
    assert.equal(await refusedWith(sessions.endOne(id, sessionOfAdmin, by())), 'not_found')
    await services.signIn('ada@example.com')
    await sessions.endAll(id, by())
    await credits.grant({ userId: id, amount: 5_000_000, description: 'Sorry' }, 'credit-1', by())
    const requests = [{ limit: 5, per: 'minute' as const }]
    await apiKeys.setOperatorLimits(apiKey.id, { ...NO_LIMITS, requests }, by())
    await apiKeys.revokeById(apiKey.id, by())
    await suppressions.record({ addresses: ['ada@example.com'], reason: 'bounce' }, 'resend')
    await suppressions.lift(address('ada@example.com'), by())
    await services.signingKeys.rotate(by())
    await users.suspend(id, by())
    await users.activate(id, by())
    await users.delete(id, by())
    const recordedEvents = await rows()
    assert.deepEqual(recordedEvents.map(({ type }) => type).toReversed(), [
      'user.role_changed',
      'user.updated',
      'user.role_changed',
      'user.limits_cleared',
      'user.sessions_ended',
      'user.sessions_ended',
      'user.credit_granted',
      'api_key.limits_changed',
      'api_key.revoked',
      'suppression.lifted',
      'signing_key.rotated',
      'user.suspended',
      'user.activated',
      'user.deleted',
    ])
    const sessionEndEvents = recordedEvents.filter(({ type }) => type === 'user.sessions_ended')
    assert.deepEqual(
      sessionEndEvents.map(({ before, after }) => [before, after]),
      [
        [{ sessions: 1 }, { sessions: 0 }],
        [null, { session_id: session!.id }],
      ],
    )
    const text = JSON.stringify(recordedEvents)
    for (const hidden of ['ada@', 'Lovelace', 'laptop', 'Sorry', createdKey.key])
      assert.ok(!text.includes(hidden), hidden)
    const eventTypes = await events(id)
    for (const type of [
      'profile_changed',
      'role_changed',
      'limits_cleared',
      'session_ended',
      'credit_granted',
      'api_key_limits_changed',
      'api_key_revoked',
      'mail_allowed_again',
      'account_suspended',
      'account_activated',
      'account_deleted',
    ])
      assert.ok(eventTypes.includes(type as never), type)
    assert.ok('rows' in (await services.verdict()))
  })

  test('the hash of a row is the SHA-256 of the previous hash and the canonical JSON of its public fields', async t => {
    const { users, ada, by, rows } = await openAudited(engine, t)
    await users.suspend(ada.user.id, by(REASON))
    const [row, before] = await rows()
    const { id, at, actor, subject, type, network, reason } = row!
    const fields = {
      id,
      at: new Date(at).toISOString(),
      actor: { ...actor },
      subject: { ...subject },
      type,
      before: row!.before,
      after: row!.after,
      reason: reason!.hash,
      network,
      request_id: row!.requestId,
    }
    const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
    assert.equal(row!.previousHash, before!.hash)
    assert.equal(before!.previousHash, '0'.repeat(64))
    assert.equal(row!.hash, sha256(row!.previousHash + canonicalJson(fields)))
    assert.equal(reason!.hash, sha256(reason!.salt! + REASON))
  })

  test('a reason is erased with the person it concerns, and the chain stays intact', async t => {
    const { users, ada, by, rows, verdict, sql } = await openAudited(engine, t)
    await users.suspend(ada.user.id, by(REASON))
    await users.delete(ada.user.id, by())
    const suspension = (await rows()).find(({ type }) => type === 'user.suspended')!
    assert.deepEqual({ ...suspension.reason, hash: null }, { text: null, salt: null, hash: null })
    assert.deepEqual((await sql('select * from audit_reasons')).rows, [])
    assert.deepEqual(await verdict(), { rows: 3, isSealed: false })
  })

  test('acts on two nodes at once make one chain without gaps', async t => {
    const services = await openAudited(engine, t)
    const node = await services.opened.reopen()
    const otherNode = await openServices(engine, t, { on: { node, of: services.opened } })
    const change: AuditChange = {
      type: 'mail.tested',
      subject: { type: 'mail', id: null, user_id: null },
      before: null,
      after: null,
    }
    const audits = [services.audit, otherNode.audit]
    const act = (index: number) =>
      audits[index % 2]!.perform(BY_COMMAND_LINE, async () => auditedOutcome(index, change, change))
    await Promise.all(Array.from({ length: 20 }, (_, index) => act(index)))
    assert.deepEqual(await services.verdict(), { rows: 41, isSealed: false })
  })

  test('a failed act leaves no row, and an act whose row fails is not done', async t => {
    const { audit, users, ada, by, rows, opened } = await openAudited(engine, t)
    await assert.rejects(
      audit.perform(by(), async tx => {
        await tx.users.suspend(ada.user.id, 1)
        throw new Error('no')
      }),
    )
    const append = async () => {
      throw new Error('disk')
    }
    const { storage } = opened
    const failure = await audit
      .perform(by(), async tx => {
        ;(tx as { audit: object }).audit = { append }
        await tx.users.suspend(ada.user.id, 1)
        return auditedOutcome(true, {
          type: 'user.suspended',
          subject: { type: 'user', id: ada.user.id, user_id: ada.user.id },
          before: null,
          after: null,
        })
      })
      .catch((error: Error) => error.message)
    assert.equal(failure, 'disk')
    assert.equal((await storage.store.users.find(ada.user.id))!.status, 'active')
    assert.equal((await rows()).length, 1)
    assert.equal((await users.suspend(ada.user.id)).status, 'suspended')
  })

  test('rows cannot be changed or deleted in the database', async t => {
    const { sql } = await openAudited(engine, t)
    await assert.rejects(sql(`update audit_events set type = 'user.activated'`), /only grows/)
    await assert.rejects(sql('delete from audit_events'), /only grows/)
  })

  test('a changed, missing, added or moved row, and a forged seal, are found', async t => {
    const attacks: Record<string, (text: (sql: string) => Promise<unknown>) => Promise<unknown>> = {
      'row 2 was changed': sql => sql(`update audit_events set type = 'user.activated' where sequence = 2`),
      'row 3 was changed': sql => sql(`update audit_events set network = null where sequence = 3`),
      'row 4 was changed': sql => sql(`update audit_events set actor_id = null where sequence = 4`),
      'row 1 was changed': sql => sql(`update audit_events set user_id = null where sequence = 1`),
      'row 5 was added': sql => sql(copyOfRow4(5)),
      'row 0 was added': sql => sql(copyOfRow4(0)),
      'row 1 was added': sql => sql('delete from audit_chain'),
      'row 2 is missing': sql => sql('delete from audit_events where sequence = 2'),
      'row 1 is missing': sql => sql('delete from audit_events where sequence = 1'),
      'rows after 3 are missing: there were 4': sql => sql('delete from audit_events where sequence = 4'),
      'rows after 3 are missing: row 4 was sealed': async sql => {
        await sql('delete from audit_events where sequence = 4')
        await sql(
          'update audit_chain set sequence = 3, hash = (select hash from audit_events where sequence = 3)',
        )
      },
      'the reason of row 2 was changed': sql => sql(`update audit_reasons set reason = 'other'`),
      'the seal of row 4 was not made with KEYWAY_SECRET': sql =>
        sql(
          `update audit_chain set sealed_mac = '${createSecrets([Buffer.alloc(32, 1)]).mac('audit', 'x')}'`,
        ),
      'row 3 does not follow row 2': async sql => {
        await sql(`update audit_events set sequence = -1 where sequence = 2`)
        await sql(`update audit_events set sequence = 2 where sequence = 3`)
        await sql(`update audit_events set sequence = 3 where sequence = -1`)
      },
    }
    for (const [mistake, attack] of Object.entries(attacks)) {
      const services = await openAudited(engine, t)
      const { users, ada, by, sql, verdict, auditKeeping } = services
      await users.suspend(ada.user.id, by('first'))
      await users.activate(ada.user.id, by())
      await users.suspend(ada.user.id, by())
      await auditKeeping.seal()
      assert.deepEqual(await verdict(), { rows: 4, isSealed: true })
      // The owner of the tables can remove the triggers that keep them append-only.
      await sql(
        engine === 'sqlite'
          ? 'drop trigger audit_events_no_update'
          : 'drop trigger audit_events_only_grows on audit_events',
      )
      if (engine === 'sqlite') await sql('drop trigger audit_events_no_delete')
      await attack(sql)
      const verdictFound = await verdict()
      assert.ok('mistake' in verdictFound, mistake)
      if (!mistake.includes('follow')) assert.equal(verdictFound.mistake, mistake)
    }
  })

  test('rows are removed after their retention, to the millisecond, and the rest stays a chain', async t => {
    const services = await openAudited(engine, t)
    const { users, ada, by, clock, rows, verdict, sql, auditKeeping } = services
    const startedAt = clock.now()
    await users.suspend(ada.user.id, by('old'))
    clock.advance(DAY)
    await users.activate(ada.user.id, by('new'))
    clock.set(startedAt + 400 * DAY)
    assert.equal(await auditKeeping.prune(100), 0)
    clock.advance(1)
    assert.equal(await auditKeeping.prune(1), 1)
    assert.equal(await auditKeeping.prune(100), 1)
    assert.deepEqual(
      (await rows()).map(({ type }) => type),
      ['user.activated'],
    )
    assert.deepEqual((await sql('select reason from audit_reasons')).rows, [{ reason: 'new' }])
    assert.deepEqual(await verdict(), { rows: 1, isSealed: false })
    await createAuditKeeping({ ...services, auditDays: 1 }).seal()
    assert.deepEqual(await verdict(), { rows: 1, isSealed: true })
  })

  test('rows are found by actor, subject, person, type and time, in pages', async t => {
    const { users, apiKeys, ada, admin, by, rows, clock, store } = await openAudited(engine, t)
    const startedAt = clock.now()
    const newKey = { name: null, scopes: null, expiresAt: null, appId: 'x', allowedNetworks: [] }
    const { apiKey } = await apiKeys.create(ada.user.id, newKey, caller())
    clock.advance(1000)
    await users.suspend(ada.user.id, by())
    await users.activate(ada.user.id, BY_COMMAND_LINE)
    clock.advance(1000)
    await apiKeys.revokeById(apiKey.id, by())
    const typesMatching = async (filter: object) => (await rows(filter)).map(({ type }) => type)
    assert.deepEqual(await typesMatching({ actor: admin.user.id }), ['api_key.revoked', 'user.suspended'])
    assert.deepEqual(await typesMatching({ subject: apiKey.id }), ['api_key.revoked'])
    const typesOfAda = ['api_key.revoked', 'user.activated', 'user.suspended']
    assert.deepEqual(await typesMatching({ subject: ada.user.id }), typesOfAda)
    assert.deepEqual(await typesMatching({ type: 'user.activated' }), ['user.activated'])
    assert.deepEqual(await typesMatching({ from: startedAt + 1000 }), typesOfAda)
    assert.deepEqual(await typesMatching({ from: startedAt + 1001 }), ['api_key.revoked'])
    assert.deepEqual(await typesMatching({ to: startedAt + 1000 }), ['user.role_changed'])
    assert.deepEqual(await typesMatching({ from: startedAt + 1, to: startedAt + 2000 }), typesOfAda.slice(1))
    const firstPage = await store.audit.list({ subject: ada.user.id }, { limit: 2, after: null })
    const secondPage = await store.audit.list({ subject: ada.user.id }, { limit: 2, after: firstPage.next })
    assert.deepEqual(
      [...firstPage.rows, ...secondPage.rows].map(({ type }) => type),
      typesOfAda,
    )
    assert.equal(secondPage.next, null)
  })
})
