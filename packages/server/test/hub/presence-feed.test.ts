import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SECOND } from '../../src/clock.ts'
import { AgentConnection } from '../../src/hub/agent-connection.ts'
import { MessageBudget, MessageLog } from '../../src/hub/message-log.ts'
import { createPresenceFeed } from '../../src/hub/presence-feed.ts'
import { Registry } from '../../src/hub/registry.ts'
import { newId } from '../../src/ids.ts'
import { createTestClock } from '../support/clock.ts'
import { caller } from '../support/services.ts'

/** More than the time after which a batch of changes is sent. */
const BATCH_PASSED_MS = 100

function openFeed(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const clock = createTestClock()
  const registry = new Registry()
  const sentNotices: string[] = []
  const names = new Map<string, string>()
  const feed = createPresenceFeed({
    clock,
    registry,
    notify(nodeId, notice) {
      assert.ok(notice.op === 'presence')
      const { userId, after, version, changes, part, parts } = notice
      const texts = changes.map(change =>
        'joined' in change
          ? `+${names.get(change.joined.connectionId)}`
          : `-${names.get(change.left)} ${change.reason}`,
      )
      assert.equal(userId, 'user')
      sentNotices.push(`${nodeId}: ${after} to ${version}, ${part + 1} of ${parts}: ${texts.join(' ')}`)
    },
  })
  const open = (name: string, agentId = 'user') => {
    const now = clock.now()
    const claims = { agentId, keyId: 'key', scopes: null, expiresAt: now }
    const host = { deregister() {}, hold() {}, logClose() {} }
    const log = new MessageLog(agentId, new MessageBudget())
    const connection = new AgentConnection(newId(now), null, claims, caller(), now, host, log)
    connection.state = 'open'
    names.set(connection.id, name)
    registry.add(connection)
    feed.add(connection)
    return connection
  }
  const close = (connection: AgentConnection, reason: string) => {
    registry.remove(connection)
    feed.remove(connection, reason)
  }
  return {
    feed,
    clock,
    open,
    close,
    passBatch: () => t.mock.timers.tick(BATCH_PASSED_MS),
    /** The notices since the last call. */
    notices: () => sentNotices.splice(0),
  }
}

test('a node that watches gets all connections, and then each batch of changes after the one before', t => {
  const { feed, open, close, passBatch, notices } = openFeed(t)
  const first = open('one')
  feed.watch('a', 'user', null)
  assert.deepEqual(notices(), ['a: null to 1, 1 of 1: +one'])
  open('two')
  open('theirs', 'eve')
  close(first, 'closed')
  assert.deepEqual(notices(), [])
  passBatch()
  assert.deepEqual(notices(), ['a: 1 to 2, 1 of 1: +two -one closed'])
  passBatch()
  assert.deepEqual(notices(), [], 'a batch is sent once')
})

test('a query is answered by nothing new, by the changes since, or by the whole list, as its version requires', t => {
  const { feed, open, notices } = openFeed(t)
  feed.watch('a', 'user', null)
  assert.deepEqual(notices(), ['a: null to 1, 1 of 1: '])
  feed.watch('a', 'user', 1)
  assert.deepEqual(notices(), ['a: 1 to 1, 1 of 1: '])
  open('one')
  feed.watch('a', 'user', 1)
  assert.deepEqual(notices(), ['a: 1 to 2, 1 of 1: +one'])
  open('two')
  feed.watch('b', 'user', null)
  assert.deepEqual(notices(), [
    'a: 2 to 3, 1 of 1: +two',
    'b: 2 to 3, 1 of 1: +two',
    'b: null to 3, 1 of 1: +one +two',
  ])
  feed.watch('a', 'user', 1)
  assert.deepEqual(notices(), ['a: null to 3, 1 of 1: +one +two'])
})

test('a node gets no notices after it stopped watching, or repeated no query for thirty seconds', t => {
  const { feed, clock, open, passBatch, notices } = openFeed(t)
  for (const node of ['a', 'b']) feed.watch(node, 'user', null)
  notices()
  feed.unwatch('a', 'user')
  feed.unwatch('a', 'unknown')
  clock.advance(30 * SECOND)
  open('one')
  passBatch()
  assert.deepEqual(notices(), ['b: 1 to 2, 1 of 1: +one'])
  clock.advance(1)
  open('two')
  passBatch()
  open('three')
  passBatch()
  assert.deepEqual(notices(), [])
  feed.watch('b', 'user', 2)
  assert.match(notices().join(), /^b: null to \d+, 1 of 1: \+one \+two \+three$/)
  feed.unwatch('b', 'user')
  open('four')
  passBatch()
  assert.deepEqual(notices(), [])
})

test('many changes are sent before the batch has passed, and a long list in parts', t => {
  const { feed, open, passBatch, notices } = openFeed(t)
  feed.watch('a', 'user', null)
  notices()
  for (let n = 0; n < 499; n++) open(`${n}`)
  assert.deepEqual(notices(), [])
  open('499')
  const [full, ...others] = notices()
  assert.deepEqual([full?.split('+').length, others], [501, []])
  open('500')
  passBatch()
  assert.deepEqual(notices(), ['a: 2 to 3, 1 of 1: +500'])
  feed.watch('a', 'user', null)
  assert.deepEqual(
    notices().map(text => [text.slice(0, text.lastIndexOf(':')), text.split('+').length - 1]),
    [
      ['a: null to 3, 1 of 2', 500],
      ['a: null to 3, 2 of 2', 1],
    ],
  )
})

test('a node that stops sends the changes that waited for their batch, and then no more', t => {
  const { feed, open, passBatch, notices } = openFeed(t)
  feed.watch('a', 'user', null)
  notices()
  open('one')
  feed.stop()
  assert.deepEqual(notices(), ['a: 1 to 2, 1 of 1: +one'])
  open('two')
  passBatch()
  assert.deepEqual(notices(), [])
})
