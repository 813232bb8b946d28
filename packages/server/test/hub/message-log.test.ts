import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiRequests } from '../../src/hub/api-requests.ts'
import { KeptMessage, MessageBudget, MessageLog } from '../../src/hub/message-log.ts'

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
