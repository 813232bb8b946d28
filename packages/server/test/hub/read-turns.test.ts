import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { yieldAfterFullRead } from '../../src/hub/read-turns.ts'
import { until } from '../support/patience.ts'

/** Three reads, which the kernel can hold. */
const WAITING_BYTES = 3 * 65_536

/** Both ends of a connection, with unread bytes at the first. */
async function openWithUnreadBytes(t: TestContext): Promise<Socket> {
  const listening = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(listening, 'listening')
  const accepted = once(listening, 'connection')
  const { port } = listening.address() as { port: number }
  const sender = connect(port, '127.0.0.1')
  const [receiver] = (await accepted) as [Socket]
  t.after(() => {
    for (const socket of [sender, receiver]) socket.destroy()
    listening.close()
  })
  sender.write(Buffer.alloc(WAITING_BYTES))
  await until('the kernel holds all bytes', () => sender.writableLength === 0)
  return receiver
}

/** The most bytes of a socket that were delivered within one turn of the event loop, and all of them. */
async function readAll(receiver: Socket): Promise<{ most: number; total: number }> {
  let [most, total, inThisTurn] = [0, 0, 0]
  receiver.on('data', chunk => {
    total += chunk.length
    inThisTurn += chunk.length
    most = Math.max(most, inThisTurn)
  })
  receiver.resume()
  const deadline = Date.now() + 10_000
  while (total < WAITING_BYTES && Date.now() < deadline) {
    await nextTurn()
    inThisTurn = 0
  }
  return { most, total }
}

test('a socket with much to read delivers two reads at most in a turn of the event loop', async t => {
  const receiver = await openWithUnreadBytes(t)
  receiver.on('data', yieldAfterFullRead)
  const { most, total } = await readAll(receiver)
  assert.equal(total, WAITING_BYTES)
  assert.ok(most <= 2 * 65_536, `${most} bytes in one turn`)
})

test('without it Node reads more, so the test above shows something', async t => {
  const { most } = await readAll(await openWithUnreadBytes(t))
  assert.ok(most > 2 * 65_536, `${most} bytes in one turn`)
})
