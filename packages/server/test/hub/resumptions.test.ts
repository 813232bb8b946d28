import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { RelayMessage } from '../../src/events.ts'
import { MAX_KEPT_MESSAGES } from '../../src/hub/message-log.ts'
import { parseResume } from '../../src/hub/resume-token.ts'
import { until } from '../support/patience.ts'
import { Client, connect, tokenOf } from './fixture.ts'
import { connectionOn, messageFrame, openAmongPeers, type Peer, parseState } from './support/peers.ts'

/**
 * Connects an agent to the hub that resumes a connection of the peer. Returns this connection, the agent's client, and
 * `question`, the id of the request by which the hub asked the peer for the connection.
 */
async function requestMove(
  { services, url, userId, key, nodeId }: Awaited<ReturnType<typeof openAmongPeers>>,
  peer: Peer,
  lastSeq = 0,
) {
  const movingConnection = connectionOn(peer, userId, key.id)
  const client = new Client(url, await tokenOf(services, key), { headers: movingConnection.headers(lastSeq) })
  const { question, from } = await peer.next('release')
  assert.equal(from, nodeId)
  return { ...movingConnection, client, question }
}

const kindsOf = (messages: readonly RelayMessage[]) => messages.map(({ kind }) => kind)

describe('a connection that moves here', () => {
  const move = async (t: Parameters<typeof openAmongPeers>[0], lastSeq?: number) => {
    const hub = await openAmongPeers(t)
    const [peer, sender] = [await hub.addPeer(), await hub.addPeer()]
    const movingConnection = await requestMove(hub, peer, lastSeq)
    const { connectionId: to } = movingConnection.identity
    /** Has the node `from` relay a message to the moving connection, as its message with this number. */
    const deliver = (from: Peer, number: number) =>
      from.order({ op: 'deliver', userId: hub.userId, to, frame: messageFrame(`${number}`), number })
    const isResumed = async () => (await movingConnection.client.next('ready')).resumed
    return { ...hub, ...movingConnection, peer, sender, deliver, isResumed }
  }

  test('is resumed if the messages that arrived on both nodes have one order, and not if they contradict each other', async t => {
    for (const [late, isInOrder] of [
      [6, true],
      [4, false],
    ] as const) {
      const { release, question, sender, deliver, isResumed, client } = await move(t)
      deliver(sender, late)
      release(question, { messages: [[`${sender.id}:5`, messageFrame('5')]] })
      assert.equal(await isResumed(), isInOrder)
      if (!isInOrder) continue
      assert.deepEqual([(await client.next('message')).data, (await client.next('message')).data], ['5', '6'])
    }
  })

  test('is resumed only if every message that its agent has not received is still kept', async t => {
    for (const lastSeq of [0, 1]) {
      const { release, question, sender, deliver, isResumed } = await move(t, lastSeq)
      const messages = Array.from({ length: MAX_KEPT_MESSAGES }, (_, n): [string, string] => [
        `${sender.id}:${n + 1}`,
        messageFrame(`${n}`),
      ])
      deliver(sender, MAX_KEPT_MESSAGES + 1)
      release(question, { messages })
      assert.equal(await isResumed(), lastSeq === 1)
    }
  })

  test('gets no message twice that its old node delivered before it handed the connection over', async t => {
    const { release, question, peer, sender, deliver, isResumed, client } = await move(t)
    deliver(sender, 1) // which the released state has too
    deliver(peer, 7) // delivered there, received by the agent and no longer kept
    deliver(peer, 8)
    release(question, { messages: [[`${sender.id}:1`, messageFrame('1')]], passed: [[peer.id, 7]] })
    assert.equal(await isResumed(), true)
    await client.flush()
    assert.deepEqual(
      client.received.map(frame => frame.type === 'message' && [frame.seq, frame.data]),
      [
        [1, '1'],
        [2, '8'],
      ],
    )
  })

  test('counts as held for a message that is sent meanwhile, if it arrives', async t => {
    for (const arrives of [true, false]) {
      const { hub, release, question, peer, sender, identity, userId } = await move(t)
      const pendingOutcome = hub.sendTo(userId, identity.connectionId, 'x')
      const denyHaving = (node: Peer, releaseQuestion: number) =>
        node.send({ kind: 'released', question: releaseQuestion, part: 0, parts: 0, text: '' })
      if (arrives) release(question)
      else {
        denyHaving(peer, question)
        denyHaving(sender, (await sender.next('release')).question)
      }
      assert.deepEqual(await pendingOutcome, arrives ? { delivered: 0, held: 1 } : null)
    }
  })

  test('goes to the agent’s second attempt if the first one broke meanwhile', async t => {
    const { services, hub, url, key, release, question, headers, client, peer } = await move(t)
    const secondClient = new Client(url, await tokenOf(services, key), { headers: headers(0) })
    await until('both ask', () => hub.connectionCount === 2)
    client.socket.terminate()
    await until('the first one is gone', () => hub.connectionCount === 1)
    // Lets the hub read the status of the key, so that it waits only for the connection to arrive.
    for (let read = 0; read < 3; read++) {
      await setImmediate()
      await services.apiKeys.findMany([key.id])
    }
    release(question)
    assert.equal((await secondClient.next('ready')).resumed, true)
    assert.ok(!kindsOf(peer.received).includes('release'), 'it was requested once')
  })

  test('is handed on to a third node that asks for it meanwhile, once it has arrived', async t => {
    const { addPeer, userId, key } = await openAmongPeers(t)
    const [old, next] = [await addPeer(), await addPeer()]
    const { identity, headers, release } = connectionOn(old, userId, key.id)
    old.send({ kind: 'adopt', connections: [identity] })
    const { question, secretHash } = await old.next('release')
    assert.equal(secretHash, null)
    const request = parseResume(headers(0)['keyway-resume'])!
    next.send({ kind: 'release', question: 1, ...identity, secretHash: request.secretHash, lastSeq: 0 })
    await setImmediate()
    assert.ok(!kindsOf(next.received).includes('released'), 'it has not arrived')
    release(question, { messages: [[`${old.id}:1`, messageFrame('1')]] })
    const answer = await next.next('released')
    assert.deepEqual([answer.question, answer.parts], [1, 1])
    assert.deepEqual(parseState(answer).messages, [[`${old.id}:1`, messageFrame('1')]])
  })
})

describe('a connection that moves away', () => {
  test('is requested by a node that is alive, even if nothing else shows that it is', async t => {
    const { hub, userId, key, addPeer } = await openAmongPeers(t)
    const peer = await addPeer({ isSilent: true })
    assert.equal(hub.health().otherNodes, 0)
    const { identity } = connectionOn(peer, userId, key.id)
    peer.send({ kind: 'release', question: 1, ...identity, secretHash: null, lastSeq: 0 })
    assert.equal(hub.health().otherNodes, 1)
  })

  test('takes along its messages, which of them were written, and which ones of this node it has', async t => {
    const hub = await openAmongPeers(t)
    const { services, url, userId, key, nodeId, addPeer } = hub
    const peer = await addPeer()
    for (const breaks of [false, true]) {
      const client = new Client(url, await tokenOf(services, key))
      const ready = await client.next('ready')
      const identity = { connectionId: ready.connection_id, userId, keyId: key.id }
      const sendMessage = (data: string) => hub.hub.sendTo(userId, ready.connection_id, data)
      await sendMessage('before')
      if (breaks) {
        client.socket.terminate()
        await until('it is held', () => hub.hub.connectionCount === 0)
      }
      await sendMessage('after')
      services.clock.advance(3000)
      const { secretHash } = parseResume(`${ready.resume_token}.0`)!
      peer.send({ kind: 'release', question: 1, ...identity, secretHash, lastSeq: 1 })
      const state = parseState(await peer.next('released'))
      const firstNumber = breaks ? 3 : 1
      assert.deepEqual(
        { ...state, messages: state.messages.map(([origin]: [string]) => origin) },
        {
          seq: 2,
          heldSeq: breaks ? 1 : 2,
          heldMs: breaks ? 3000 : 0,
          secretHash,
          address: '127.0.0.1',
          client: 'test',
          passed: [[nodeId, firstNumber + 1]],
          messages: [`${nodeId}:${firstNumber}`, `${nodeId}:${firstNumber + 1}`],
          sends: null,
        },
      )
      if (!breaks) assert.equal(await client.end(), '4409 resumed_elsewhere')
    }
  })
})

describe('a node that shuts down', () => {
  /** Takes over all connections that the hub offers next, and returns their ids. */
  const takeOver = async (peer: Peer) => {
    const { connections } = await peer.next('adopt')
    for (const [question, identity] of connections.entries())
      peer.send({ kind: 'release', question, ...identity, secretHash: null, lastSeq: 0 })
    for (const _ of connections) assert.equal((await peer.next('released')).parts, 1)
    return connections.map(({ connectionId }) => connectionId)
  }

  test('offers its broken connections to the other nodes in turn, at once', async t => {
    const { services, hub, url, key, addPeer } = await openAmongPeers(t)
    const peers = [await addPeer(), await addPeer()]
    const openClient = await connect(services, url, key)
    const brokenClient = await connect(services, url, key)
    brokenClient.socket.terminate()
    await until('it is held', () => hub.connectionCount === 1)
    const draining = hub.drain(60_000)
    await openClient.next('draining')
    for (const peer of peers) {
      const { connections } = await peer.next('adopt')
      assert.deepEqual(
        connections.map(({ connectionId }) => connectionId),
        [brokenClient.id],
      )
      if (peer !== peers.at(-1)) services.clock.advance(500)
      else peer.received.unshift({ kind: 'adopt', from: '', connections })
    }
    assert.deepEqual(await takeOver(peers[1]!), [brokenClient.id])
    openClient.socket.close()
    await draining
    assert.deepEqual(kindsOf(peers[0]!.received).slice(-1), ['left'])
  })

  test('closes the open connections in the end, hands them over, and only then says that it has left', async t => {
    const { services, hub, url, key, addPeer, transport } = await openAmongPeers(t)
    const peer = await addPeer()
    const client = await connect(services, url, key)
    const steps: string[] = []
    transport.beforeDelivery = async ({ kind }) => {
      await setImmediate()
      steps.push(kind)
    }
    const draining = hub.drain(40).then(() => steps.push('drained'))
    assert.equal(await client.end(), '1012 restarting')
    assert.deepEqual(await takeOver(peer), [client.id])
    await draining
    assert.deepEqual(steps.slice(-3), ['released', 'left', 'drained'])
  })

  test('offers a connection that is still moving here once it has arrived, and takes over no further one', async t => {
    const { hub, userId, key, addPeer } = await openAmongPeers(t)
    const [old, next] = [await addPeer(), await addPeer()]
    const [arriving, late] = [connectionOn(old, userId, key.id), connectionOn(old, userId, key.id)]
    old.send({ kind: 'leaving' })
    old.send({ kind: 'adopt', connections: [arriving.identity] })
    const { question } = await old.next('release')
    const draining = hub.drain(60_000)
    await next.next('leaving')
    old.send({ kind: 'adopt', connections: [late.identity] })
    await setImmediate()
    assert.ok(!kindsOf(next.received).includes('adopt'), 'it has not arrived')
    arriving.release(question)
    assert.deepEqual(await takeOver(next), [arriving.identity.connectionId])
    await draining
    assert.ok(!kindsOf(old.received).includes('release'))
    assert.ok(!kindsOf(old.received).includes('adopt'), 'it is leaving')
  })
})
