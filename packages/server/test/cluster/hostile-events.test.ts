import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { postgresMissing } from '../support/engines.ts'
import { call, revokeKey } from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { redisMissing } from '../support/redis.ts'
import { fuzzEvents, openTappedNodes, sendAndReceive } from './hostile-events.ts'

const NOTIFICATION_COUNT = 5_000

const OPTIONS = { skip: postgresMissing() || redisMissing() }

for (const carrier of ['PostgreSQL', 'Redis'] as const) {
  describe(`an attacker on the event carrier, ${carrier}`, OPTIONS, () => {
    test('a listener on the carrier can read neither messages nor ids', async t => {
      const nodes = await openTappedNodes(t, carrier)
      const agentOfA = await nodes.connect(nodes.a)
      const agentOfB = await nodes.connect(nodes.b)
      await sendAndReceive(agentOfA, agentOfB, 'the-text-of-a-short-message')
      await sendAndReceive(agentOfA, agentOfB, 'the-text-of-a-long-message'.repeat(1000))
      await nodes.a.hub.sendTo(nodes.userId, agentOfB.id, 'the-text-of-the-API')
      await revokeKey(nodes.a.origin, nodes.accessToken, nodes.keyId)
      assert.equal((await agentOfB.closed).code, 4410)
      const { recorded, decode } = nodes.tap
      // The attacker's own connection may receive events later than the nodes do.
      await until('the events are recorded', () => recorded.length > 8)
      const readableText = recorded
        .flatMap(({ payload }) => [payload, decode(payload)])
        .map(String)
        .join('\n')
      for (const secret of ['the-text-of', nodes.userId, nodes.keyId, agentOfA.id, agentOfB.id])
        assert.ok(!readableText.includes(secret), `${secret} can be read`)
    })

    test('forged notifications have no effect', t => fuzzEvents(t, carrier, NOTIFICATION_COUNT))

    test('replayed events have no effect, also on a node that started after they were recorded', async t => {
      const nodes = await openTappedNodes(t, carrier)
      const agentOfA = await nodes.connect(nodes.a)
      const agentOfB = await nodes.connect(nodes.b)
      await sendAndReceive(agentOfA, agentOfB, 'z'.repeat(20_000))
      assert.equal(await nodes.a.hub.disconnect(nodes.userId, nodes.keyId), true)
      assert.deepEqual([(await agentOfA.closed).code, (await agentOfB.closed).code], [1001, 1001])
      const recordedMessages = nodes.tap.recorded.slice()

      const restartedNode = await nodes.startAnother()
      await until(
        'the restarted node receives events',
        () => restartedNode.services.storage.eventsHealth().listening,
      )
      const agents = await Promise.all([nodes.a, nodes.b, restartedNode].map(nodes.connect))
      for (let times = 0; times < 3; times++) await nodes.tap.publish(recordedMessages)
      await sendAndReceive(agents[0]!, agents[1]!, 'after the replay')
      await sendAndReceive(agents[0]!, agents[2]!, 'after the replay')
      await wait(100)
      for (const { socket, frames } of agents) {
        assert.equal(socket.readyState, socket.OPEN)
        assert.deepEqual(
          frames.filter(({ data }) => data !== undefined && data !== 'after the replay'),
          [],
        )
      }
      assert.ok(nodes.b.services.storage.eventsHealth().rejected!.get('replayed')! >= recordedMessages.length)
    })
  })
}

test('rejected events are counted in a metric', OPTIONS, async t => {
  const { a, tap } = await openTappedNodes(t, 'PostgreSQL')
  await tap.publish([{ channel: 'keyway_sealed', payload: Buffer.from('no event') }])
  const { storage } = a.services
  await until('the event is counted', () => storage.eventsHealth().rejected!.get('malformed') === 1)
  const { body } = await call(a.origin, 'GET', '/metrics')
  assert.match(body, /^keyway_events_rejected_total\{reason="malformed"\} 1$/m)
})
