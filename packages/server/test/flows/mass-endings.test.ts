import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DELETION_WAIT } from '../../src/account-changes/deletions.ts'
import type { JournalEntry } from '../../src/backup/journal-entry.ts'
import { createJournalWriter } from '../../src/backup/journal-writer.ts'
import { MINUTE } from '../../src/clock.ts'
import type { Fact } from '../../src/endings/fact.ts'
import { MAX_LIVE_SESSIONS } from '../../src/sessions/sessions.ts'
import { aKey } from '../contract/fixtures.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { caller, openServices, type Services } from '../support/services.ts'

/** So many sessions that their facts cannot all be arguments of one JavaScript call, as in `push(...facts)`. */
const SESSION_COUNT = 70_000

async function rowsOf({ opened }: Services, sql: string): Promise<Record<string, unknown>[]> {
  return (await opened.storage.engine.connection.execute(sql, [])).rows as Record<string, unknown>[]
}

/** Inserts `count` copies of a session, each created a millisecond before the previous one. */
async function copySession(services: Services, engine: EngineName, id: string, count: number): Promise<void> {
  const columns =
    'user_id, app_id, kind, last_used_at, expires_at, counter, sealed_secret, retry_keys, ended_at, ended_by, network, client, scopes, audience, auth_time, sign_in_id'
  const [numbers, padded] =
    engine === 'sqlite'
      ? [
          `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count})`,
          "printf('%012d', i)",
        ]
      : [`with n(i) as (select generate_series(1, ${count}))`, "lpad(i::text, 12, '0')"]
  await rowsOf(
    services,
    `insert into sessions (id, created_at, ${columns}) ${numbers} select '00000000-0000-7000-8000-' || ${padded}, created_at - i, ${columns} from sessions, n where id = '${id}'`,
  )
}

const nameOf = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`

forEachEngine(engine => {
  test('a person has at most 1,000 live sessions: a further one ends the oldest, which the owner sees', async t => {
    const services = await openServices(engine, t)
    const { store, clock } = services
    const { user, session } = await services.signIn('ada@example.com')
    await copySession(services, engine, session.id, MAX_LIVE_SESSIONS - 1)
    clock.advance(MINUTE)
    const isLive = async (id: string) => (await store.sessions.find(id))?.endedAt === null
    assert.ok(await isLive(nameOf(MAX_LIVE_SESSIONS - 1)))
    const secondSignIn = await services.signIn('ada@example.com')
    assert.ok(!(await isLive(nameOf(MAX_LIVE_SESSIONS - 1))), 'the oldest')
    for (const id of [secondSignIn.session.id, session.id, nameOf(MAX_LIVE_SESSIONS - 2)])
      assert.ok(await isLive(id))
    const { rows } = await store.securityEvents.list(user.id, { limit: 10, after: null })
    const endedSessionIds = rows
      .filter(({ type }) => type === 'session_ended')
      .map(({ sessionId }) => sessionId)
    assert.deepEqual(endedSessionIds, [nameOf(MAX_LIVE_SESSIONS - 1)])

    const bob = await services.signIn('bob@example.com')
    assert.ok(await isLive(bob.session.id))
    assert.ok(await isLive(nameOf(MAX_LIVE_SESSIONS - 2)), 'of another person')
  })

  test('of more surplus sessions than a sign-in ends, it ends the oldest', async t => {
    const services = await openServices(engine, t)
    const { user, session } = await services.signIn('ada@example.com')
    await copySession(services, engine, session.id, 1200)
    const signIns: string[] = []
    for (const remainingCopies of [1100, 1000, 996]) {
      services.clock.advance(MINUTE)
      signIns.unshift((await services.signIn('ada@example.com')).session.id)
      const rows = await rowsOf(
        services,
        `select id from sessions where user_id = '${user.id}' and ended_at is null order by created_at desc, id desc`,
      )
      const copies = Array.from({ length: remainingCopies }, (_, at) => nameOf(at + 1))
      const newest = [...signIns, session.id, ...copies]
      assert.equal(rows.length, newest.length)
      assert.ok(rows.every(({ id }, at) => id === newest[at]))
    }
  })

  test('the deletion of an account ends its active keys, and records nothing of expired ones', async t => {
    const services = await openServices(engine, t)
    const { clock, storage } = services
    const { user } = await services.signIn('ada@example.com')
    const now = clock.now()
    const activeKeys = [aKey(user.id, { expiresAt: now + 1 }), aKey(user.id, { expiresAt: null })]
    const expiredKeys = [aKey(user.id, { expiresAt: now }), aKey(user.id, { expiresAt: now - MINUTE })]
    await storage.transaction(async tx => {
      for (const key of [...activeKeys, ...expiredKeys]) await tx.apiKeys.insert(key)
    })
    await services.users.delete(user.id)
    const endedKeys = await rowsOf(services, "select subject_id from endings where kind = 'api_key'")
    assert.deepEqual(endedKeys.map(row => row.subject_id).sort(), activeKeys.map(({ id }) => id).sort())
    assert.equal((await services.store.apiKeys.findMany([activeKeys[0]!.id]))[0]!.revokedAt, now)
  })

  test('an account whose deletion fails does not hold up the others', async t => {
    const services = await openServices(engine, t)
    const { clock, deletions } = services
    const [ada, bob] = [await services.signIn('ada@example.com'), await services.signIn('bob@example.com')]
    for (const { user } of [ada, bob]) {
      await deletions.request(user.id, caller())
      clock.advance(1)
    }
    const [failing, condition] = [ada.user.id, "new.status = 'deleted'"]
    if (engine === 'sqlite')
      await rowsOf(
        services,
        `create trigger refused before update on users when ${condition} and new.id = '${failing}' begin select raise(abort, 'refused'); end`,
      )
    else {
      await rowsOf(
        services,
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$",
      )
      await rowsOf(
        services,
        `create trigger refused before update on users for each row when (${condition} and new.id = '${failing}') execute function refuse()`,
      )
    }
    clock.advance(DELETION_WAIT)
    await assert.rejects(deletions.deleteDue())
    const usersAfterwards = await Promise.all([ada, bob].map(({ user }) => services.users.get(user.id)))
    assert.deepEqual(
      usersAfterwards.map(user => user?.status),
      ['active', 'deleted'],
    )
  })
})

test('one transaction ends 70,000 sessions of a person, of before their limit, and records each', async t => {
  const services = await openServices('sqlite', t)
  const { clock, opened } = services
  const { user, session } = await services.signIn('ada@example.com')
  await copySession(services, 'sqlite', session.id, SESSION_COUNT)
  const by = { at: clock.now(), caller: null }
  await opened.storage.transaction(tx => tx.sessions.endAllOf(user.id, 'suspended', null, by))
  const [live] = await rowsOf(services, 'select count(*) as n from sessions where ended_at is null')
  const [ended] = await rowsOf(services, "select count(*) as n from endings where kind = 'session'")
  assert.deepEqual([Number(live!.n), Number(ended!.n)], [0, SESSION_COUNT + 1])
})

test('the journal reads the states that a transaction changed some at a time', async () => {
  let [reading, most] = [0, 0]
  const find = async () => {
    most = Math.max(most, ++reading)
    await Promise.resolve()
    reading--
    return null
  }
  const appended: JournalEntry[] = []
  const journal = { append: async (entries: readonly JournalEntry[]) => void appended.push(...entries) }
  const write = createJournalWriter({
    journal,
    store: { sessions: { find } },
    clock: { now: () => 0 },
  } as never)
  const facts: Fact[] = Array.from({ length: 1000 }, (_, n) => ({
    type: 'changed',
    kind: 'session',
    id: nameOf(n),
    userId: 'ada',
  }))
  await write(facts)
  assert.ok(most <= 20, `${most} at once`)
  assert.deepEqual(appended, [])
})
