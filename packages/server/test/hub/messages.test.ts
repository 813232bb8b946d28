import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { connect, makeKey } from './fixture.ts'
import { openAmongPeers } from './support/peers.ts'

describe('a message to a connection', () => {
  test('of its sender’s node is sent to no other node, and one to a key is', async t => {
    const { services, url, userId, key, addPeer } = await openAmongPeers(t)
    const peer = await addPeer({ hasUser: true })
    const receiverKey = await makeKey(services, userId)
    const [sender, receiver] = [await connect(services, url, key), await connect(services, url, receiverKey)]
    const send = (to: string) => sender.send({ type: 'send', id: to, to, data: 'x' })
    send(receiver.id)
    assert.deepEqual(await sender.next('sent'), { type: 'sent', id: receiver.id, delivered: 1, held: 0 })
    send(sender.id)
    assert.deepEqual(await sender.next('sent'), { type: 'sent', id: sender.id, delivered: 0, held: 0 })
    send(receiverKey.id)
    const { order, question } = await peer.nextOrder('deliver')
    assert.deepEqual([order.to, order.except], [receiverKey.id, sender.id], 'the first one')
    peer.send({ kind: 'answer', question, count: 2, held: 3 })
    assert.deepEqual(await sender.next('sent'), { type: 'sent', id: receiverKey.id, delivered: 3, held: 3 })
  })
})

describe('an answer to a request of the API', () => {
  test('is sent only to the node that awaits it', async t => {
    const { services, url, key, addPeer } = await openAmongPeers(t)
    const [asking, other] = [await addPeer({ hasUser: true }), await addPeer({ hasUser: true })]
    const agent = await connect(services, url, key)
    agent.send({ type: 'send', id: '1', to: `api.${asking.id}`, data: 'x', reply_to: 'request' })
    const { question } = await asking.nextOrder('deliver')
    asking.send({ kind: 'answer', question, count: 1 })
    assert.equal((await agent.next('sent')).delivered, 1)
    assert.ok(!other.received.some(message => message.kind === 'order' && message.order.op === 'deliver'))
  })
})

describe('a numbered message', () => {
  test('that is repeated before other nodes have answered is acknowledged with their answers, and sent once', async t => {
    const { services, url, key, addPeer } = await openAmongPeers(t)
    const peer = await addPeer({ hasUser: true })
    const sender = await connect(services, url, key)
    for (let times = 0; times < 2; times++)
      sender.send({ type: 'send', id: `${times}`, to: 'all', data: 'x', seq: 1 })
    const { question } = await peer.nextOrder('deliver')
    await sender.flush()
    assert.deepEqual(sender.received, [], 'the peer has not answered')
    peer.send({ kind: 'answer', question, count: 1 })
    const answers = [await sender.next('sent'), await sender.next('sent')]
    assert.deepEqual(answers.map(({ id, delivered }) => [id, delivered]).sort(), [
      ['0', 1],
      ['1', 1],
    ])
    assert.ok(!peer.received.some(message => message.kind === 'order' && message.order.op === 'deliver'))
  })
})
