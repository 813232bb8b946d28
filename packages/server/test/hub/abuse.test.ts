import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { inTime, onceInTime } from '../support/patience.ts'
import { connect, open, tokenOf } from './fixture.ts'
import { closeCodeIn, dialHub } from './support/raw-frames.ts'

const MASK = [0, 0, 0, 0]

/** Name, bytes that a hostile client writes after its handshake, and the close code that it gets. */
const ATTACKS: [string, number[], number][] = [
  ['an unmasked frame', [0x81, 0x02, 0x7b, 0x7d], 1002],
  ['a reserved bit, as of a compressed frame', [0xc1, 0x82, ...MASK, 0x7b, 0x7d], 1002],
  ['an unknown opcode', [0x83, 0x82, ...MASK, 0x7b, 0x7d], 1002],
  ['a continuation frame without a first one', [0x80, 0x82, ...MASK, 0x7b, 0x7d], 1002],
  ['a fragmented ping', [0x09, 0x80, ...MASK], 1002],
  ['a ping of more than 125 bytes', [0x89, 0xfe, 0x00, 0x7e, ...MASK], 1002],
  ['text that is not UTF-8', [0x81, 0x82, ...MASK, 0xc3, 0x28], 1007],
  ['a close code that does not exist', [0x88, 0x82, ...MASK, 0x00, 0x01], 1002],
  ['a length of 2^62', [0x81, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, ...MASK], 1009],
  ['a frame of 65,537 bytes', [0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 1, ...MASK], 1009],
]

describe('malformed WebSocket frames', () => {
  for (const [attack, bytes, code] of ATTACKS) {
    test(`${attack} closes its connection with ${code} and no other`, async t => {
      const { services, url, port, key, hub } = await open('sqlite', t)
      const witness = await connect(services, url, key)
      const { socket, closed } = await openWebSocket(port, await tokenOf(services, key))
      socket.write(Buffer.from(bytes))
      assert.equal(await closed, code)
      await witness.flush()
      assert.equal(hub.connectionCount, 1)
    })
  }

  const ping = Buffer.from([0x89, 0x80, ...MASK])
  const pong = Buffer.from([0x8a, 0x80, ...MASK])
  const text = Buffer.from([0x81, 0x82, ...MASK, 0x7b, 0x7d])
  for (const [kind, frames] of Object.entries({
    pings: [ping],
    pongs: [pong],
    'all kinds': [ping, pong, text],
  })) {
    for (const count of [600, 20_000]) {
      test(`${count} frames at once (${kind}) close their connection with 4429 and no other`, async t => {
        const { services, url, port, key, hub } = await open('sqlite', t)
        const witness = await connect(services, url, key)
        const { socket, closed } = await openWebSocket(port, await tokenOf(services, key))
        socket.write(Buffer.concat(Array.from({ length: count / frames.length }, () => frames).flat()))
        assert.equal(await closed, 4429)
        await witness.flush()
        assert.equal(hub.connectionCount, 1)
      })
    }
  }

  test('a flood ends its TCP connection after the close frame, though the client sends none', async t => {
    const { services, port, key } = await open('sqlite', t)
    const socket = dialHub(port, await tokenOf(services, key))
    await onceInTime(socket, 'data')
    socket.write(Buffer.concat(Array.from({ length: 600 }, () => ping)))
    socket.resume()
    await inTime('the end of the connection', once(socket, 'end'))
  })

  test('399 frames of any kind at once keep the connection open, and a frame a second later is answered', async t => {
    const { services, port, key, later } = await open('sqlite', t)
    const { socket, closed, received } = await openWebSocket(port, await tokenOf(services, key))
    socket.write(Buffer.concat(Array.from({ length: 133 }, () => [ping, pong, text]).flat()))
    await received(Buffer.from('rate_limited'))
    await later(3000)
    const pingText = '{"type":"ping"}'
    socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | pingText.length, ...MASK]), Buffer.from(pingText)]))
    await received(Buffer.from('{"type":"pong"}'))
    socket.write(Buffer.from([0x88, 0x82, ...MASK, 0x03, 0xe8]))
    assert.equal(await closed, 1000)
  })

  test('a message of ten thousand fragments is refused', async t => {
    const { services, port, key } = await open('sqlite', t)
    const { socket, closed } = await openWebSocket(port, await tokenOf(services, key))
    const emptyFragment = Buffer.from([0x00, 0x81, ...MASK, 0x20])
    socket.write(Buffer.from([0x01, 0x80, ...MASK]))
    for (let n = 0; n < 10_000; n++) socket.write(emptyFragment)
    assert.ok([1008, 1009, 1002].includes((await closed) ?? 0))
  })
})

/** Opens a WebSocket over a bare TCP socket; `closed` resolves with the code of the close frame, null without one. */
async function openWebSocket(
  port: number,
  token: string,
): Promise<{
  socket: Socket
  closed: Promise<number | null>
  /** Resolves when these bytes have arrived. */
  received(bytes: Buffer): Promise<void>
}> {
  const socket = dialHub(port, token)
  const chunks: Buffer[] = []
  const arrivalEmitter = new EventEmitter()
  socket.on('data', chunk => {
    chunks.push(Buffer.from(chunk))
    arrivalEmitter.emit('data')
    if (closeCodeIn(Buffer.concat(chunks)) !== null) socket.end()
  })
  const closed = new Promise<number | null>(done =>
    socket.on('close', () => done(closeCodeIn(Buffer.concat(chunks)))),
  )
  const received = async (bytes: Buffer) => {
    while (!Buffer.concat(chunks).includes(bytes)) await onceInTime(arrivalEmitter, 'data')
  }
  await received(Buffer.from('"ready"'))
  return { socket, closed, received }
}
