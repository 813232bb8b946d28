import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY, HOUR } from '../../src/clock.ts'
import { unavailable } from '../../src/errors.ts'
import { createHousekeeping } from '../../src/operations/housekeeping.ts'
import { createStatistics } from '../../src/statistics/statistics.ts'
import { forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'

forEachEngine(engine => {
  test('statistics have sign-ups, sign-ins, exchanges, calls, mails and refusals of the whole service, by hour and by day', async t => {
    const server = await openServer(engine, t)
    const { statistics, meter, clock } = server
    const admin = await server.signIn('admin@example.com')
    await server.users.setRole(admin.user.id, 'admin')
    const token = admin.tokens.accessToken
    await server.signIn('ada@example.com')
    await server.signIn('ada@example.com')
    const { key } = await server.createKey(token)
    await server.post('/auth/agent-token', { api_key: key })
    await server.post('/auth/agent-token', { api_key: `svc_${'0'.repeat(32)}` })
    await server.post('/auth/agent-token', { api_key: 5 })
    await server.get('/v1/me')
    for (const state of ['sent', 'failed', 'expired'] as const) statistics.countMail(state)
    statistics.countResponse({ status: 503, code: 'unavailable' })
    await statistics.measure(7)
    await statistics.measure(3)
    await meter.flush()
    await statistics.flush()
    const expected = {
      people: 2,
      live_agents: 7,
      sign_ups: 2,
      sign_ins: 3,
      exchanges: 1,
      api_calls: 1,
      mails_sent: 1,
      mails_failed: 2,
      errors: 1,
      refused: { invalid_api_key: 1, invalid_request: 1, authentication_required: 1 },
    }
    for (const bucket of ['hour', 'day']) {
      const { status, body } = await server.get(`/v1/admin/statistics?bucket=${bucket}`, { token })
      assert.equal(status, 200)
      const { start, ...values } = body.data.at(-1)
      assert.deepEqual(values, expected)
      assert.equal(start, bucket === 'hour' ? '2026-11-20T12:00:00.000Z' : '2026-11-20T00:00:00.000Z')
      assert.equal(body.data.length, bucket === 'hour' ? 24 : 30)
      assert.deepEqual([body.data[0].people, body.data[0].sign_ups], [null, 0])
    }

    clock.advance(HOUR)
    await statistics.measure(0)
    await statistics.flush()
    const csv = await server.get('/v1/admin/statistics?bucket=hour', {
      token: key,
      headers: { accept: 'text/csv' },
    })
    const [head, ...lines] = csv.text.trimEnd().split('\r\n')
    assert.equal(
      head,
      'start,people,live_agents,sign_ups,sign_ins,exchanges,api_calls,mails_sent,mails_failed,errors,refused,refused_authentication_required,refused_invalid_api_key,refused_invalid_request',
    )
    assert.equal(lines.at(-2), '2026-11-20T12:00:00.000Z,2,7,2,3,1,1,1,2,1,3,1,1,1')
    assert.match(lines[0]!, /Z,,,0,0,0,0,0,0,0,0,0,0,0$/)
    assert.equal((await server.get('/v1/admin/statistics?bucket=week', { token: key })).status, 400)
    assert.equal(
      (await server.get('/v1/admin/statistics?from=2020-01-01T00:00:00Z', { token: key })).status,
      400,
    )

    assert.equal(await statistics.people(), 2, 'now, not when it was measured')
    const { countFewPeople } = server.opened.storage.store.statistics
    assert.deepEqual(await Promise.all([2, 1].map(countFewPeople)), [2, null])
    await server.users.delete((await server.signIn('ada@example.com')).user.id)
    assert.equal(await statistics.people(), 1)
  })

  test('statistics of two nodes add up, and a flush whose answer was lost is added once', async t => {
    const server = await openServer(engine, t)
    const { clock, storage } = server
    let isCut = true
    const statisticsOfOtherNode = createStatistics({
      clock,
      storage: {
        ...storage,
        async transaction(work, readBack) {
          const outcome = await storage.transaction(work, readBack)
          if (isCut) throw unavailable('cut')
          return outcome
        },
      },
    })
    const reportBefore = (await server.statistics.report()).at(-1)!
    server.statistics.count('sign_ins', 5)
    statisticsOfOtherNode.count('sign_ins', 3)
    statisticsOfOtherNode.count('refused:rate_limited', 2)
    await assert.rejects(statisticsOfOtherNode.flush())
    statisticsOfOtherNode.count('sign_ins')
    isCut = false
    await Promise.all([statisticsOfOtherNode.flush(), server.statistics.flush()])
    await statisticsOfOtherNode.flush()
    const { sign_ins, refused } = (await server.statistics.report()).at(-1)!
    assert.equal(sign_ins - reportBefore.sign_ins, 9)
    assert.deepEqual(refused, { rate_limited: 2 })
  })

  test('statistics are kept for 90 days by the hour and 400 days by the day, and people are counted once an hour', async t => {
    const server = await openServer(engine, t)
    const { clock, statistics, store } = server
    const housekeeping = createHousekeeping(server)
    await server.signIn('ada@example.com')
    await statistics.measure(1)
    await statistics.flush()
    await server.signIn('bob@example.com')
    await statistics.measure(1)
    await statistics.flush()
    const latestPeopleCount = async () => (await statistics.report({ bucket: 'hour' })).at(-1)!.people
    assert.equal(await latestPeopleCount(), 1)
    clock.advance(HOUR)
    await statistics.measure(1)
    await statistics.flush()
    assert.equal(await latestPeopleCount(), 2)
    const storedCount = async (unit: 'hour' | 'day') =>
      (await store.statistics.read(unit, 0, Number.MAX_SAFE_INTEGER)).length
    clock.advance(90 * DAY)
    await housekeeping.run()
    assert.ok((await storedCount('hour')) > 0)
    clock.advance(2 * HOUR)
    await housekeeping.run()
    assert.equal(await storedCount('hour'), 0)
    assert.ok((await storedCount('day')) > 0)
    clock.advance(311 * DAY)
    await housekeeping.run()
    assert.equal(await storedCount('day'), 0)
  })
})
