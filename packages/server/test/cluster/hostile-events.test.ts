import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { postgresMissing } from '../support/engines.ts'
import { call, revokeKey } from '../support/nodes.ts'
import { redisMissing } from '../support/redis.ts'
import { fuzzEvents, openTown, say, until } from './hostile-events.ts'

const COUNT = 5_000

const OPTIONS = { timeout: 60_000, skip: postgresMissing() || redisMissing() }

for (const carrier of ['PostgreSQL', 'Redis'] as const) {
  describe(`a stranger between the nodes, on ${carrier}`, OPTIONS, () => {
    test('who listens finds neither the text of messages nor ids', async t => {
      const town = await openTown(t, carrier)
      const here = await town.connect(town.a)
      const there = await town.connect(town.b)
      await say(here, there, 'the-text-of-a-short-message')
      await say(here, there, 'the-text-of-a-long-message'.repeat(1000))
      await town.a.hub.sendTo(town.userId, there.id, 'the-text-of-the-API')
      await revokeKey(town.a.origin, town.accessToken, town.keyId)
      assert.equal((await there.closed).code, 4410)
      const { recorded, decode } = town.tap
      assert.ok(recorded.length > 8, `${recorded.length} recorded`)
      const readable = recorded
        .flatMap(({ payload }) => [payload, decode(payload)])
        .map(String)
        .join('\n')
      for (const secret of ['the-text-of', town.userId, town.keyId, here.id, there.id])
        assert.ok(!readable.includes(secret), `${secret} can be read`)
    })

    test('forged notifications change nothing and end nothing', t => fuzzEvents(t, carrier, COUNT))

    test('what was recorded changes nothing when it is replayed, also to a node that started since', async t => {
      const town = await openTown(t, carrier)
      const here = await town.connect(town.a)
      const there = await town.connect(town.b)
      await say(here, there, 'z'.repeat(20_000))
      assert.equal(await town.a.hub.disconnect(town.userId, town.keyId), true)
      assert.deepEqual([(await here.closed).code, (await there.closed).code], [1001, 1001])
      const recorded = town.tap.recorded.slice()

      const restarted = await town.startAnother()
      await until(() => restarted.services.storage.eventsHealth().listening)
      const agents = await Promise.all([town.a, town.b, restarted].map(town.connect))
      for (let times = 0; times < 3; times++) await town.tap.publish(recorded)
      await say(agents[0]!, agents[1]!, 'after it')
      await say(agents[0]!, agents[2]!, 'after it')
      await wait(100)
      for (const { socket, frames } of agents) {
        assert.equal(socket.readyState, socket.OPEN)
        assert.deepEqual(
          frames.filter(({ data }) => data !== undefined && data !== 'after it'),
          [],
        )
      }
      assert.ok(town.b.services.storage.eventsHealth().rejected!.get('replayed')! >= recorded.length)
    })
  })
}

test('rejected events are a metric', OPTIONS, async t => {
  const { a, tap } = await openTown(t, 'PostgreSQL')
  await tap.publish([{ channel: 'keyway_sealed', payload: Buffer.from('no event') }])
  const { storage } = a.services
  await until(() => storage.eventsHealth().rejected!.get('malformed') === 1)
  const { body } = await call(a.origin, 'GET', '/metrics')
  assert.match(body, /^keyway_events_rejected_total\{reason="malformed"\} 1$/m)
})
