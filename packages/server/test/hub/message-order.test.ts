import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { encodeMessage } from '../../src/hub/frame.ts'
import { KeptMessage } from '../../src/hub/message-log.ts'
import { mergeInOrder } from '../../src/hub/message-order.ts'
import { newId } from '../../src/ids.ts'

const keptMessages = (origins: string) =>
  origins
    .split(' ')
    .filter(Boolean)
    .map(origin => new KeptMessage('{"type":"message"}', origin))

/** Returns the origins of the merged messages in order; null if no order is certain. */
function mergedOrigins(written: string, fromOld: string, fromNew: string): string | null {
  return (
    mergeInOrder(keptMessages(written), keptMessages(fromOld), keptMessages(fromNew))
      ?.map(({ origin }) => origin)
      .join(' ') ?? null
  )
}

describe('messages that two nodes kept for one connection', () => {
  test('are merged, each once: those of the old node first, and both in their order', () => {
    assert.equal(mergedOrigins('', '', ''), '')
    assert.equal(mergedOrigins('a:1', 'a:2', 'b:1'), 'a:1 a:2 b:1')
    assert.equal(mergedOrigins('', 'a:1 a:2', 'a:1 a:2 a:3'), 'a:1 a:2 a:3')
    assert.equal(mergedOrigins('', 'a:1 a:2 b:5', 'c:1 a:2 c:2'), 'a:1 c:1 a:2 b:5 c:2')
    assert.equal(mergedOrigins('', 'a:1', 'b:1 a:1'), 'b:1 a:1')
    assert.equal(mergedOrigins('', 'a:2', 'a:1 a:2'), 'a:1 a:2')
  })

  test('follow the old node where the orders differ, since both are right about each sender', () => {
    assert.equal(mergedOrigins('', 'a:1 b:1', 'b:1 a:1'), 'a:1 b:1')
  })

  test('follow all earlier ones of their node, also where the new node had them before others', () => {
    assert.equal(mergedOrigins('', 'b:1 a:1', 'a:2 b:1'), 'b:1 a:1 a:2')
  })

  test('keep their order when the new node kept only the first of several', () => {
    assert.equal(mergedOrigins('', 'a:1 a:2 a:3', 'a:1'), 'a:1 a:2 a:3')
  })

  test('have no certain order if the old node missed one, and the agent may have a later one of its sender', () => {
    assert.equal(mergedOrigins('a:2', '', 'a:1'), null)
    assert.equal(mergedOrigins('', 'a:2', 'a:1'), null)
    assert.equal(mergedOrigins('a:10', '', 'a:9'), null)
  })

  test('have no certain order if their sender has moved to another node between them', () => {
    const [sender, stranger] = [newId(1), newId(2)]
    const messageFrom = (id: string, origin: string) => {
      const message = { id: 'a "\\', from: id, from_key_id: null, data: { from: 'x' } }
      return new KeptMessage(encodeMessage(message)!, origin)
    }
    const [missed, later, other] = [
      messageFrom(sender, 'a:1'),
      messageFrom(sender, 'b:1'),
      messageFrom(stranger, 'b:1'),
    ]
    assert.equal(mergeInOrder([later], [], [missed], [missed, later]), null)
    const received = messageFrom(sender, 'a:2')
    assert.equal(
      mergeInOrder([later], [], [missed], [missed, received, later]),
      null,
      'also if the agent has received another one of the sender',
    )
    const byHttp = [messageFrom('api', 'a:3'), messageFrom('api', 'b:2')] as const
    assert.deepEqual(mergeInOrder([byHttp[1]], [], [byHttp[0]], byHttp), [byHttp[1], byHttp[0]])
    assert.deepEqual(mergeInOrder([other], [], [missed], [missed, other]), [other, missed])
    assert.deepEqual(mergeInOrder([missed], [], [later], [missed, later]), [missed, later])
  })
})
