import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { connect, open, tokenOf } from './fixture.ts'
import { closeCodeIn, dialHub } from './support/raw-frames.ts'

const MASK = [0, 0, 0, 0]

/** What a hostile client writes after its handshake, and the code that it is closed with. */
const ATTACKS: [string, number[], number][] = [
  ['an unmasked frame', [0x81, 0x02, 0x7b, 0x7d], 1002],
  ['a reserved bit, as of a compressed frame', [0xc1, 0x82, ...MASK, 0x7b, 0x7d], 1002],
  ['an unknown opcode', [0x83, 0x82, ...MASK, 0x7b, 0x7d], 1002],
  ['a continuation of nothing', [0x80, 0x82, ...MASK, 0x7b, 0x7d], 1002],
  ['a fragmented ping', [0x09, 0x80, ...MASK], 1002],
  ['a ping of more than 125 bytes', [0x89, 0xfe, 0x00, 0x7e, ...MASK], 1002],
  ['text that is not UTF-8', [0x81, 0x82, ...MASK, 0xc3, 0x28], 1007],
  ['a close code that does not exist', [0x88, 0x82, ...MASK, 0x00, 0x01], 1002],
  ['a length of 2^62', [0x81, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, ...MASK], 1009],
  ['a frame of one byte too many', [0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 1, ...MASK], 1009],
]

describe('against the WebSocket protocol itself', { timeout: 30_000 }, () => {
  for (const [attack, bytes, code] of ATTACKS) {
    test(`${attack} closes with ${code} and disturbs nobody`, async t => {
      const { services, url, port, key, hub } = await open('sqlite', t)
      const witness = await connect(services, url, key)
      const { socket, closed } = await upgrade(port, await tokenOf(services, key))
      socket.write(Buffer.from(bytes))
      assert.equal(await closed, code)
      await witness.flush()
      assert.equal(hub.connectionCount, 1)
    })
  }

  test('a flood of protocol pings ends the connection and disturbs nobody', async t => {
    const { services, url, port, key, hub } = await open('sqlite', t)
    const witness = await connect(services, url, key)
    const { socket, closed } = await upgrade(port, await tokenOf(services, key))
    socket.write(Buffer.concat(Array.from({ length: 2000 }, () => Buffer.from([0x89, 0x80, ...MASK]))))
    await closed
    await witness.flush()
    assert.equal(hub.connectionCount, 1)
  })

  test('a message in ten thousand pieces is not put together', async t => {
    const { services, port, key } = await open('sqlite', t)
    const { socket, closed } = await upgrade(port, await tokenOf(services, key))
    const piece = Buffer.from([0x00, 0x81, ...MASK, 0x20])
    socket.write(Buffer.from([0x01, 0x80, ...MASK]))
    for (let n = 0; n < 10_000; n++) socket.write(piece)
    assert.ok([1008, 1009, 1002].includes((await closed) ?? 0))
  })
})

/** A bare socket that is a WebSocket from now on, and the code of the close frame that it gets at last. */
async function upgrade(
  port: number,
  token: string,
): Promise<{ socket: Socket; closed: Promise<number | null> }> {
  const socket = dialHub(port, token)
  const chunks: Buffer[] = []
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  socket.on('data', chunk => {
    chunks.push(Buffer.from(chunk))
    if (Buffer.concat(chunks).includes('"ready"')) resolve()
    if (closeCodeIn(Buffer.concat(chunks)) !== null) socket.end()
  })
  const closed = new Promise<number | null>(done =>
    socket.on('close', () => done(closeCodeIn(Buffer.concat(chunks)))),
  )
  await ready
  return { socket, closed }
}
