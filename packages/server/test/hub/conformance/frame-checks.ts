import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Json } from '@keyway/sdk/protocol'
import { onceInTime } from '../../support/patience.ts'
import type { Check, HubUnderTest, ReadyClient } from './hub-under-test.ts'

/** Code and id of the `error` that answers a frame. */
async function errorAbout(client: ReadyClient, frame: Json) {
  client.send(frame)
  const { code, id } = await client.next('error')
  return id === undefined ? code : `${code} ${id}`
}

async function connectPair(hub: HubUnderTest): Promise<[ReadyClient, ReadyClient]> {
  return [await hub.connect(), await hub.connect()]
}

async function closeStatusAfter(hub: HubUnderTest, action: (client: ReadyClient) => void): Promise<string> {
  const client = await hub.connect()
  action(client)
  return client.end()
}

export const frameChecks: Check[] = [
  {
    section: '2',
    promise: '`ping` is answered by `pong`, and unknown fields are ignored',
    async run(hub) {
      const client = await hub.connect()
      client.send({ type: 'ping', later: { version: 2 } })
      assert.deepEqual(await client.next('pong'), { type: 'pong' })
    },
  },
  {
    section: '2',
    promise: 'an unknown or invalid frame is answered by `error` with its id, and the connection stays open',
    async run(hub) {
      const client = await hub.connect()
      const id = '7'
      assert.equal(await errorAbout(client, { type: 'dance', id }), 'unknown_type 7')
      assert.equal(await errorAbout(client, { id }), 'invalid_frame 7')
      assert.equal(await errorAbout(client, { type: 'token' }), 'invalid_frame')
      assert.equal(await errorAbout(client, { type: 'send', to: 'all', data: 1 }), 'invalid_frame')
      assert.equal(await errorAbout(client, { type: 'send', id, to: 7, data: 1 }), 'invalid_frame 7')
      assert.equal(await errorAbout(client, { type: 'send', id, to: 'all' }), 'invalid_frame 7')
      assert.equal(
        await errorAbout(client, { type: 'send', id: 'x'.repeat(129), to: 'all', data: 1 }),
        'invalid_frame',
      )
      await client.flush()
    },
  },
  {
    section: '2',
    promise: 'a message that is not one JSON object as text closes with 4400',
    async run(hub) {
      for (const text of ['', '[]', 'null', '7', '{} {}', '{"type":"ping"']) {
        assert.equal(await closeStatusAfter(hub, ({ socket }) => socket.send(text)), '4400 bad_message', text)
      }
      assert.equal(
        await closeStatusAfter(hub, client => client.send(Buffer.from('{"type":"ping"}'))),
        '4400 bad_message',
      )
    },
  },
  {
    section: '2',
    promise: 'a message of 65,536 bytes is accepted, one byte more closes with 1009',
    async run(hub) {
      const client = await hub.connect()
      client.socket.send('{"type":"ping"}'.padEnd(65_536))
      await client.next('pong')
      client.socket.send('{"type":"ping"}'.padEnd(65_537))
      assert.match(await client.end(), /^1009/)
    },
  },
  {
    section: '2',
    promise: 'a fragmented message is one frame, also with protocol pings in between',
    async run(hub) {
      const { socket } = await hub.connect()
      const answer = once(socket, 'message')
      socket.send('{"type":', { fin: false })
      socket.ping()
      socket.send('"ping"}', { fin: true })
      assert.equal(String((await answer)[0]), '{"type":"pong"}')
    },
  },
  {
    section: '2',
    promise: 'violations of RFC 6455 close with 1002 or 1007',
    async run(hub) {
      assert.match(await closeStatusAfter(hub, ({ socket }) => socket.send('{}', { mask: false })), /^1002/)
      const invalidUtf8 = Buffer.from([0x7b, 0xc3, 0x28, 0x7d])
      assert.match(
        await closeStatusAfter(hub, ({ socket }) => socket.send(invalidUtf8, { binary: false })),
        /^1007/,
      )
    },
  },
  {
    section: '3',
    promise:
      'a message reaches one connection, a key’s connections or all, never its sender; `sent` counts them',
    async run(hub) {
      const [sender, receiver] = await connectPair(hub)
      const { connection_id, key_id } = receiver.ready
      for (const [index, to] of [connection_id, key_id, 'all'].entries()) {
        const id = randomUUID()
        sender.send({ type: 'send', id, to, data: { to } })
        const acknowledgement = await sender.next('sent')
        assert.equal(acknowledgement.id, id)
        assert.ok(
          to === connection_id ? acknowledgement.delivered === 1 : acknowledgement.delivered >= 1,
          `delivered ${acknowledgement.delivered}`,
        )
        assert.deepEqual(await receiver.next('message'), {
          type: 'message',
          seq: index + 1,
          id,
          from: sender.ready.connection_id,
          from_key_id: sender.ready.key_id,
          data: { to },
        })
      }
      await sender.flush()
      assert.ok(!sender.received.some(frame => frame.type === 'message'))
    },
  },
  {
    section: '3',
    promise: 'sending to an unknown target is answered by `sent` with 0',
    async run(hub) {
      const client = await hub.connect()
      for (const to of [randomUUID(), 'nowhere', client.ready.connection_id]) {
        client.send({ type: 'send', id: to, to, data: null })
        assert.deepEqual(await client.next('sent'), { type: 'sent', id: to, delivered: 0, held: 0 })
      }
    },
  },
  {
    section: '3',
    promise: 'messages of one sender to one receiver arrive in order',
    async run(hub) {
      const [sender, receiver] = await connectPair(hub)
      const receiverId = receiver.ready.connection_id
      for (let n = 0; n < 100; n++) sender.send({ type: 'send', id: `${n}`, to: receiverId, data: n })
      for (let n = 0; n < 100; n++) assert.equal((await receiver.next('message')).data, n)
    },
  },
  {
    section: '3',
    promise: '`reply_to` of a message is passed on, and is an id',
    async run(hub) {
      const [sender, receiver] = await connectPair(hub)
      const frame = { type: 'send', id: 'x', to: receiver.ready.connection_id, data: 1 }
      sender.send({ ...frame, reply_to: 'r'.repeat(128) })
      assert.equal((await receiver.next('message')).reply_to, 'r'.repeat(128))
      for (const reply_to of ['', 7, 'r'.repeat(129)])
        assert.equal(await errorAbout(sender, { ...frame, reply_to }), 'invalid_frame x')
    },
  },
  {
    section: '3',
    promise:
      'a watch gives all connections and then each change, or `insufficient_scope` without agents:read',
    async run(hub) {
      const client = await hub.connect()
      const { scopes } = client.ready
      if (scopes.length > 0 && !scopes.includes('agents:read')) {
        assert.equal(await errorAbout(client, { type: 'watch', id: 'w' }), 'insufficient_scope w')
        return
      }
      client.send({ type: 'watch' })
      const listedIds: string[] = []
      for (let more = true; more; ) {
        const frame = await client.next('presence')
        listedIds.push(...frame.connections.map(each => each.connection_id))
        more = frame.more === true
      }
      assert.ok(listedIds.includes(client.ready.connection_id))
      const otherClient = await hub.connect()
      const id = otherClient.ready.connection_id
      await client.until(() =>
        client.received.find(frame => frame.type === 'joined' && frame.connection.connection_id === id),
      )
      otherClient.socket.close(1000)
      const leftFrame = await client.until(() =>
        client.received.find(frame => frame.type === 'left' && frame.connection_id === id),
      )
      assert.equal(leftFrame.type === 'left' && leftFrame.reason, 'closed')
    },
  },
  {
    section: '3',
    promise: 'a message too long for the receivers’ frame is `invalid_frame`',
    async run(hub) {
      const client = await hub.connect()
      const frame = { type: 'send', id: 'x', to: 'all', data: 'x'.repeat(65_450) }
      assert.equal(await errorAbout(client, frame), 'invalid_frame x')
    },
  },
  {
    section: '4',
    promise: 'a new token renews in place; an invalid one is `invalid_token`, and the old one stays',
    async run(hub) {
      const client = await hub.connect()
      assert.equal(await errorAbout(client, { type: 'token', token: 'garbage' }), 'invalid_token')
      client.send({ type: 'token', token: await hub.token() })
      const acceptedToken = await client.next('token_accepted')
      assert.ok(acceptedToken.expires_in > 0)
      assert.ok(Date.parse(acceptedToken.expires_at) >= Date.parse(client.ready.expires_at))
      await client.flush()
    },
  },
  {
    section: '6',
    promise: 'a flood is `rate_limited`, and closes with 4429 if it continues',
    async run(hub) {
      const client = await hub.connect()
      for (let n = 0; n < 1500; n++) client.send({ type: 'ping' })
      assert.equal(await client.end(), '4429 rate_limited')
      assert.ok(client.received.some(frame => frame.type === 'error' && frame.code === 'rate_limited'))
    },
  },
  {
    section: '4',
    promise: 'the server pings every 25 s',
    slow: true,
    async run(hub) {
      const client = await hub.connect()
      const startedAt = performance.now()
      await onceInTime(client.socket, 'ping')
      const seconds = (performance.now() - startedAt) / 1000
      assert.ok(seconds > 20 && seconds < 28, `after ${seconds} s`)
    },
  },
]
