import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiRequests } from '../../src/hub/api-requests.ts'
import { encodeMessage } from '../../src/hub/frame.ts'
import { KeptMessage, MAX_KEPT_MESSAGES, MessageBudget, MessageLog } from '../../src/hub/message-log.ts'
import { newId } from '../../src/ids.ts'

test('a connection that moved has the messages that its old nodes sent before it left them', () => {
  const log = new MessageLog('ann', new MessageBudget())
  const wasSentBeforeMove = (origin: string) =>
    log.wasSentBeforeMove(new KeptMessage('{"type":"message"}', origin))
  assert.equal(wasSentBeforeMove('a:1'), false)
  log.leftNodes = [
    ['a', 5],
    ['b', 10],
  ]
  for (const origin of ['a:1', 'a:5', 'b:6', 'b:10']) assert.equal(wasSentBeforeMove(origin), true, origin)
  for (const origin of ['a:6', 'a:10', 'b:11', 'c:1']) assert.equal(wasSentBeforeMove(origin), false, origin)
})

test('a log keeps messages after a number until the agent has acknowledged them', () => {
  const log = new MessageLog('ann', new MessageBudget(), 7)
  const originsAfter = (seq: number) => log.after(seq).map(({ origin }) => origin)
  assert.deepEqual([log.floor, originsAfter(0)], [7, []])
  for (const origin of ['a:1', 'a:2', 'a:3']) log.add(new KeptMessage('{"type":"message"}', origin))
  assert.deepEqual([log.seq, log.floor], [10, 7])
  assert.deepEqual(
    [originsAfter(0), originsAfter(8), originsAfter(10)],
    [['a:1', 'a:2', 'a:3'], ['a:2', 'a:3'], []],
  )
  assert.deepEqual(
    [6, 7, 10, 11].map(seq => log.keepsAllAfter(seq)),
    [false, true, true, false],
  )
  log.forget(8)
  assert.deepEqual([log.floor, originsAfter(0)], [8, ['a:2', 'a:3']])
  log.forget(5)
  assert.deepEqual([log.floor, originsAfter(0)], [8, ['a:2', 'a:3']])
  log.clear()
  assert.deepEqual([log.seq, log.floor, originsAfter(0)], [10, 10, []])
})

test('a request that was answered keeps its answer when it ends', async () => {
  const requests = new ApiRequests('node')
  const request = requests.begin('ann')!
  const frame = (data: unknown) => JSON.stringify({ type: 'message', reply_to: request.id, data })
  assert.equal(requests.receiveAnswer('eve', frame('forged')), false)
  assert.equal(requests.receiveAnswer('ann', JSON.stringify({ type: 'message', data: 'no request' })), false)
  assert.equal(requests.receiveAnswer('ann', frame({ result: 1 })), true)
  request.end()
  assert.equal(requests.receiveAnswer('ann', frame({ result: 2 })), false)
  assert.deepEqual(await request.answer, { result: 1 })
})

/** A message whose first copy takes 1000 bytes, of which each further log that keeps it takes 16. */
const message = (origin: string) => new KeptMessage(`{"type":"message"${'x'.repeat(1000 - 256 - 16)}`, origin)

test('an owner may use half of the memory that others leave free, to the byte, and has it back when it is released', () => {
  const budget = new MessageBudget(8000)
  const logs = ['ann', 'ann', 'bob'].map(userId => new MessageLog(userId, budget)) as [
    MessageLog,
    MessageLog,
    MessageLog,
  ]
  const [first, second, others] = logs
  const keptCounts = () => logs.map(({ seq, floor }) => seq - floor)
  for (let n = 1; n <= 4; n++) first.add(message(`a:${n}`))
  assert.deepEqual([keptCounts(), budget.total], [[4, 0, 0], 4000])
  second.add(message('a:5'))
  assert.deepEqual([keptCounts(), budget.total], [[4, 0, 0], 4000], 'no room')
  for (let n = 1; n <= 2; n++) others.add(message(`b:${n}`))
  assert.deepEqual([keptCounts(), budget.total], [[4, 0, 2], 6000])
  first.forget(2)
  assert.deepEqual([keptCounts(), budget.total], [[2, 0, 2], 4000])
  second.add(message('a:6'))
  assert.deepEqual([keptCounts(), budget.total], [[2, 1, 2], 5000])
  for (const log of logs) log.clear()
  assert.equal(budget.total, 0)
  // Logs that were empty meanwhile count together again.
  for (let n = 1; n <= 2; n++) for (const log of [second, first]) log.add(message(`a:${n}`))
  assert.deepEqual([keptCounts(), budget.total], [[2, 2, 0], 4000])
  first.add(message('a:3'))
  assert.deepEqual([keptCounts(), budget.total], [[0, 2, 0], 2000], 'its log keeps nothing then')
})

test('a message that several logs keep takes its memory once, until the last of them drops it', () => {
  const budget = new MessageBudget()
  const logs = Array.from({ length: 3 }, () => new MessageLog('ann', budget))
  const shared = message('a:1')
  for (const log of logs) log.add(shared)
  assert.deepEqual([shared.logCount, budget.total], [3, 1032])
  logs[0]!.clear()
  assert.deepEqual([shared.logCount, budget.total], [2, 1016])
  logs[1]!.clear()
  assert.deepEqual([shared.logCount, budget.total], [1, 1000])
  logs[2]!.clear()
  logs[2]!.clear()
  assert.deepEqual([shared.logCount, budget.total], [0, 0])
})

test('a log keeps the last 256 messages, and a MiB of them, to the byte', () => {
  const budget = new MessageBudget()
  const log = new MessageLog('ann', budget)
  const add = (length: number) => log.add(new KeptMessage(`{"type":"message"${'x'.repeat(length)}`, 'a:1'))
  for (let n = 1; n <= MAX_KEPT_MESSAGES; n++) assert.equal(add(1), n)
  assert.equal(log.floor, 0)
  add(1)
  assert.equal(log.floor, 1)
  log.clear()
  const start = log.seq
  for (let n = 0; n < 4; n++) add(256 * 1024)
  assert.equal(log.floor, start, 'a MiB')
  add(1)
  assert.equal(log.floor, start + 1)
  add(3 * 256 * 1024 - 1)
  assert.equal(log.floor, start + 3, 'as many as necessary are dropped')
  add(1024 * 1024)
  assert.deepEqual([log.floor, log.after(0).length], [log.seq - 1, 1])
})

test('a message names its sender if a connection sent it, whatever its id contains', () => {
  const sender = newId(1)
  const from = (from: string, id: string) =>
    new KeptMessage(encodeMessage({ id, from, from_key_id: null, data: { from: newId(2) } })!, 'a:1')
  for (const id of ['1', 'a "quoted\\" id', `","from":"${newId(3)}"`, '\u0000'.repeat(128)])
    assert.equal(from(sender, id).sender, sender, id)
  assert.equal(from('api', '1').sender, null)
  assert.equal(from('api.node', `"from":"${sender}"`).sender, null)
  const { frame } = from(sender, 'ü')
  assert.equal(new KeptMessage(frame, 'a:1').frame, frame)
})
