import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { RelayMessage } from '../../src/events.ts'
import { AgentConnection, type ConnectionHost, HEARTBEAT_SECONDS } from '../../src/hub/agent-connection.ts'
import { KeptMessage, MAX_KEPT_MESSAGES, MessageBudget, MessageLog } from '../../src/hub/message-log.ts'
import { OwnerLimits } from '../../src/hub/rate-limits.ts'
import { Registry } from '../../src/hub/registry.ts'
import { newResumeToken, parseResume } from '../../src/hub/resume-token.ts'
import { createResumptions } from '../../src/hub/resumptions.ts'
import { newId } from '../../src/ids.ts'
import { createTestClock } from '../support/clock.ts'
import { patienceMs, until } from '../support/patience.ts'
import { caller } from '../support/services.ts'
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
    const peers = [await addPeer()]
    // A heartbeat sorts nodes by their start, and those that started in the same millisecond by their random ids.
    services.clock.advance(1)
    peers.push(await addPeer())
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
    const draining = hub.drain(patienceMs(400)).then(() => steps.push('drained'))
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

  test('hands over a broken connection whose earlier messages its agent has confirmed', async t => {
    const { services, hub, url, userId, key, addPeer } = await openAmongPeers(t)
    const peer = await addPeer()
    const client = await connect(services, url, key)
    await hub.sendTo(userId, client.id, 'confirmed')
    await client.next('message')
    services.clock.advance(HEARTBEAT_SECONDS * 1000)
    await hub.sweep()
    hub.tick()
    await client.flush() // The hub has the client's pong, too.
    client.socket.terminate()
    await until('it is held', () => hub.connectionCount === 0)
    await hub.sendTo(userId, client.id, 'kept')
    const draining = hub.drain(60_000)
    const { connections } = await peer.next('adopt')
    peer.send({ kind: 'release', question: 1, ...connections[0]!, secretHash: null, lastSeq: 0 })
    const { seq, messages } = parseState(await peer.next('released'))
    assert.deepEqual([seq, messages.length], [2, 1])
    await draining
  })
})

test('a connection that moves here after its key was revoked ends, though no event says so', async t => {
  t.after(() => mock.timers.reset())
  mock.timers.enable({ apis: ['setInterval'] }) // No sweep finds the ending either.
  const { services, hub, userId, key, addPeer } = await openAmongPeers(t)
  const old = await addPeer()
  for (const isRevoked of [false, true]) {
    if (isRevoked) await services.apiKeys.revoke(userId, key.id, caller())
    const { identity, release } = connectionOn(old, userId, key.id)
    old.send({ kind: 'adopt', connections: [identity] })
    release((await old.next('release')).question)
    const send = () => hub.sendTo(userId, identity.connectionId, 'x')
    if (isRevoked) await until('it ended', async () => (await send()) === null)
    else assert.equal((await send())?.held, 1)
  }
})

test('a resume token names its node and its connection, and has a secret of its own', () => {
  const [nodeId, connectionId] = [newId(1), newId(2)]
  const tokens = [newResumeToken(nodeId, connectionId), newResumeToken(nodeId, connectionId)]
  newResumeToken(newId(3), newId(4))
  for (const { token, secretHash } of tokens)
    assert.deepEqual(parseResume(`${token}.7`), { nodeId, connectionId, secretHash, lastSeq: 7 })
  assert.notEqual(tokens[0]!.secretHash, tokens[1]!.secretHash)
})

test('a message to a connection that is still moving here goes to the other nodes of its owner, too', async t => {
  const hub = await openAmongPeers(t)
  const [old, other] = [await hub.addPeer(), await hub.addPeer({ hasUser: true })]
  const moving = await requestMove(hub, old)
  const pendingOutcome = hub.hub.sendTo(hub.userId, moving.identity.connectionId, 'x')
  const { order, question } = await other.nextOrder('deliver')
  assert.equal(order.to, moving.identity.connectionId)
  moving.release(moving.question)
  other.send({ kind: 'answer', question, count: 0 })
  assert.deepEqual(await pendingOutcome, { delivered: 0, held: 1 })
})

describe('the memory of kept messages', () => {
  const REQUEST = { connectionId: 'c', userId: 'ann', keyId: 'key', secretHash: 'hash' }

  /** The resumptions of node `here`, whose only peer is `a`. */
  const openResumptions = () => {
    const [clock, registry, budget] = [createTestClock(), new Registry(), new MessageBudget()]
    const published: RelayMessage[] = []
    const host: ConnectionHost = {
      deregister: connection => registry.remove(connection),
      hold() {},
      logClose() {},
    }
    const resumptions = createResumptions({
      ...{ clock, registry, budget, host, nodeId: 'here', maxConnectionsPerUser: 10 },
      relay: {
        publish: (_to, message) => published.push(message) > 0,
        currentPeers: () => ['a'],
        responsivePeers: () => ['a'],
        flush: async () => {},
      },
      locations: { enter: () => undefined },
      isDraining: () => false,
      recheck() {},
      messages: { lastNumber: 0 },
      ownerLimits: new OwnerLimits(100),
    })
    const create = (id: string) => {
      const claims = { agentId: 'ann', keyId: 'key', scopes: null, expiresAt: 0 }
      return new AgentConnection(id, null, claims, caller(), clock.now(), host, new MessageLog('ann', budget))
    }
    /** A broken connection that keeps its second message, but not its first one. */
    const addHeld = () => {
      const connection = create('c')
      connection.state = 'held'
      connection.resumeHash = 'hash'
      registry.add(connection)
      resumptions.hold(connection)
      for (const n of [1, 2]) connection.deliver(new KeptMessage(messageFrame(`${n}`), `a:${n}`))
      connection.log.forget(1)
    }
    const claim = (lastSeq: number) =>
      resumptions.claim(create('new'), { nodeId: 'here', connectionId: 'c', secretHash: 'hash', lastSeq })
    return { resumptions, registry, budget, published, addHeld, claim }
  }

  test('is released when a resumption is impossible, since a message is missing, and kept for one that succeeds', () => {
    for (const [lastSeq, isKept] of [
      [0, false],
      [1, true],
    ] as const) {
      const { budget, addHeld, claim } = openResumptions()
      addHeld()
      assert.ok(budget.total > 0)
      assert.equal(claim(lastSeq) !== null, isKept)
      assert.equal(budget.total > 0, isKept)
    }
  })

  test('is released when a connection is handed over to another node', async () => {
    for (const [lastSeq, parts] of [
      [0, 1],
      [1, 1],
    ] as const) {
      const { resumptions, registry, budget, published, addHeld } = openResumptions()
      addHeld()
      resumptions.receive({ kind: 'release', from: 'a', question: 1, ...REQUEST, lastSeq })
      assert.deepEqual([budget.total, registry.size, registry.heldCount], [0, 0, 0])
      await setImmediate()
      const answers = published.flatMap(message => (message.kind === 'released' ? message : []))
      assert.deepEqual(
        answers.map(answer => [answer.parts, Object.keys(JSON.parse(answer.text)).length > 0]),
        [[parts, lastSeq === 1]],
      )
    }
  })

  test('of the nodes that a connection was on is bounded: the last eight are named', async () => {
    const { resumptions, registry, published, addHeld } = openResumptions()
    addHeld()
    const earlier = Array.from({ length: 8 }, (_, n): [string, number] => [`node ${n}`, n])
    registry.byId.get('c')!.log.leftNodes = earlier
    resumptions.receive({ kind: 'release', from: 'a', question: 1, ...REQUEST, lastSeq: 1 })
    await setImmediate()
    const answer = published.find(message => message.kind === 'released')!
    assert.deepEqual(parseState(answer).passed, [...earlier.slice(1), ['here', 0]])
  })

  test('is used once for a message that arrives both with a connection that moves and on its new node', async () => {
    const { resumptions, registry, budget, published } = openResumptions()
    const { secretHash: _, ...identity } = REQUEST
    resumptions.receive({ kind: 'adopt', from: 'a', connections: [identity] })
    await setImmediate()
    const request = published.find(message => message.kind === 'release')!
    resumptions.receive(request)
    const connection = registry.byId.get('c')!
    const message = new KeptMessage(messageFrame('1'), 'a:1')
    connection.deliver(message)
    const bytesOfOne = budget.total
    const state = {
      ...{ seq: 1, heldSeq: 0, heldMs: 0, secretHash: 'hash', address: '::1', client: null, sends: null },
      ...{ passed: [], messages: [['a:1', messageFrame('1')]] },
    }
    const answer = { kind: 'released', from: 'a', question: 1, part: 0, parts: 1 } as const
    resumptions.receive({ ...answer, text: JSON.stringify(state) })
    await setImmediate()
    assert.deepEqual([connection.state, connection.log.seq, budget.total], ['held', 1, bytesOfOne])
    assert.deepEqual([registry.arriving.size, registry.unordered.size], [0, 0])
    resumptions.endHeld()
    assert.deepEqual([connection.state, budget.total], ['closed', 0])
  })
})
