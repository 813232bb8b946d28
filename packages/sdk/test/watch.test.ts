import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { until } from '../../server/test/support/patience.ts'
import { Agent } from '../src/agent.ts'
import type { AgentOptions } from '../src/agent-options.ts'
import { KeywayError } from '../src/errors.ts'
import { platformWebSocket, startConnected } from './support/agents.ts'
import { sharedKeyway } from './support/keyway-server.ts'
import type { ServerEnd } from './support/protocol-server.ts'
import { record } from './support/recorder.ts'

const hasCode = (code: string) => (error: unknown) => error instanceof KeywayError && error.code === code
const connectionObject = (id: string) => ({
  connection_id: id,
  key_id: 'key',
  key_name: null,
  connected_at: '2026-01-01T00:00:00.000Z',
  address: '::1',
  client: null,
})
const sendList = (serverEnd: ServerEnd, ids: string[], more?: true) =>
  serverEnd.send({ type: 'presence', connections: ids.map(connectionObject), ...(more && { more }) })

describe('agent.watch()', () => {
  test('yields the whole list once it is complete, then each change, and the list again after a reconnection', async t => {
    const { server, agent, events, clock, serverEnd } = await startConnected(t)
    const firstWatch = agent.watch()
    assert.equal(((await serverEnd.frames.next()) as { type: string }).type, 'watch')
    sendList(serverEnd, ['a', 'b'], true)
    sendList(serverEnd, ['c'])
    const fullList = { type: 'presence', connections: ['a', 'b', 'c'].map(connectionObject) }
    assert.deepEqual((await firstWatch.next()).value, fullList)
    serverEnd.send({ type: 'joined', connection: connectionObject('d') })
    serverEnd.send({ type: 'left', connection_id: 'a', reason: 'closed' })
    assert.deepEqual((await firstWatch.next()).value, { type: 'joined', connection: connectionObject('d') })
    assert.deepEqual((await firstWatch.next()).value, { type: 'left', connectionId: 'a', reason: 'closed' })
    const secondWatch = agent.watch()
    const currentList = { type: 'presence', connections: ['b', 'c', 'd'].map(connectionObject) }
    assert.deepEqual(
      (await secondWatch.next()).value,
      currentList,
      'another iterator begins with the list so far',
    )
    assert.equal(serverEnd.frames.rest.length, 0)

    serverEnd.close(1012, 'restarting')
    await events.disconnected.next()
    clock.advance(1000)
    const nextEnd = await server.connections.next()
    assert.equal(((await nextEnd.frames.next()) as { type: string }).type, 'watch')
    sendList(nextEnd, ['e'])
    for (const iterator of [firstWatch, secondWatch])
      assert.deepEqual((await iterator.next()).value, {
        type: 'presence',
        connections: [connectionObject('e')],
      })

    await firstWatch.return?.()
    await secondWatch.return?.()
    assert.equal(((await nextEnd.frames.next()) as { type: string }).type, 'unwatch')
  })

  test('throws when the hub refuses the watch, and retries later when it is rate limited', async t => {
    const { agent, clock, serverEnd } = await startConnected(t)
    const watch = agent.watch()
    await serverEnd.frames.next()
    serverEnd.send({ type: 'error', code: 'rate_limited', detail: 'Wait.', id: 'watch' })
    const nextEvent = watch.next()
    serverEnd.send({ type: 'message', id: '1', from: 'x', from_key_id: null, data: 1 }) // after the error was read
    await record(agent).message.next()
    clock.advance(10_000)
    await serverEnd.frames.next()
    sendList(serverEnd, [])
    assert.deepEqual((await nextEvent).value, { type: 'presence', connections: [] })
    serverEnd.send({ type: 'error', code: 'insufficient_scope', detail: 'No.', id: 'watch' })
    await assert.rejects(watch.next(), hasCode('insufficient_scope'))
    assert.equal(agent.connected, true)
  })

  test('ends at the hub too when it is read too slowly', async t => {
    const { agent, serverEnd } = await startConnected(t)
    const slowWatch = agent.watch()
    await serverEnd.frames.next()
    sendList(serverEnd, [])
    for (let n = 0; n < 10_000; n++) serverEnd.send({ type: 'left', connection_id: `${n}`, reason: 'closed' })
    assert.equal(((await serverEnd.frames.next()) as { type: string }).type, 'unwatch')
    await assert.rejects(slowWatch.next(), hasCode('queue_full'))
  })

  test('ends with the agent', async t => {
    const { agent, serverEnd } = await startConnected(t)
    const watch = agent.watch()
    agent.close()
    assert.equal((await watch.next()).done, true)
    assert.equal((await agent.watch().next()).done, true)
    await serverEnd.closed
  })

  const newPerson = sharedKeyway()

  async function start(t: { after(fn: () => void): void }) {
    const { url, keyway } = await newPerson()
    const connect = async (name: string, WebSocket: AgentOptions['WebSocket'] = platformWebSocket) => {
      const { key, id } = await keyway.apiKeys.create({ name })
      const agent = new Agent({ url, apiKey: key, WebSocket })
      t.after(() => agent.close())
      const events = record(agent)
      return { agent, id, events, ready: await events.ready.next() }
    }
    return { keyway, connect }
  }

  test('shows the connections of the real hub, and why they left', async t => {
    const { keyway, connect } = await start(t)
    const watcher = await connect('watcher')
    const changes = watcher.agent.watch()
    const firstEvent = (await changes.next()).value
    assert.equal(firstEvent?.type, 'presence')
    const otherAgent = await connect('other')
    const joinedEvent = (await changes.next()).value
    assert.deepEqual(
      joinedEvent?.type === 'joined' && joinedEvent.connection,
      (await keyway.agents.list()).data[0],
    )
    await keyway.apiKeys.revoke(otherAgent.id)
    const leftEvent = { type: 'left', connectionId: otherAgent.ready.connectionId, reason: 'revoked' }
    assert.deepEqual((await changes.next()).value, leftEvent)
  })

  test('yields the list again when its connection is resumed: with what changed meanwhile, and each later change once', async t => {
    const { keyway, connect } = await start(t)
    let isReachable = true
    const sockets: BreakableSocket[] = []
    class BreakableSocket extends WebSocket {
      watchFrames = 0
      constructor(url: string, protocols: string[]) {
        super(isReachable ? url : 'ws://127.0.0.1:1', protocols)
        sockets.push(this)
      }
      override send(data: string): void {
        if (JSON.parse(data).type === 'watch') this.watchFrames++
        super.send(data)
      }
    }
    const [leaving, staying] = [await connect('leaving'), await connect('staying')]
    const watcher = await connect('watcher', BreakableSocket as unknown as AgentOptions['WebSocket'])
    const changes = watcher.agent.watch()
    const names = async () => {
      const { value } = await changes.next()
      assert.equal(value?.type, 'presence')
      return value.connections.map(({ key_name }: { key_name: string | null }) => key_name).sort()
    }
    assert.deepEqual(await names(), ['leaving', 'staying', 'watcher'])

    isReachable = false
    sockets.at(-1)!.terminate()
    await watcher.events.disconnected.next()
    leaving.agent.close()
    const newAgent = await connect('coming')
    await until('one left', async () => (await keyway.agents.list()).data.length === 2)
    isReachable = true
    const readyEvent = await watcher.events.ready.next()
    assert.deepEqual([readyEvent.resumed, readyEvent.connectionId], [true, watcher.ready.connectionId])
    assert.deepEqual(await names(), ['coming', 'staying', 'watcher'])

    staying.agent.close()
    const closedEvent = { type: 'left', connectionId: staying.ready.connectionId, reason: 'closed' }
    assert.deepEqual((await changes.next()).value, closedEvent)
    await keyway.apiKeys.revoke(newAgent.id)
    const revokedEvent = { type: 'left', connectionId: newAgent.ready.connectionId, reason: 'revoked' }
    assert.deepEqual((await changes.next()).value, revokedEvent)
    assert.deepEqual(
      sockets.filter(({ watchFrames }) => watchFrames > 0).map(({ watchFrames }) => watchFrames),
      [1, 1],
      'once for each socket',
    )
  })
})
