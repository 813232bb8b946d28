import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { openServer } from '../support/http.ts'
import { onceInTime, patienceMs } from '../support/patience.ts'

const LIVEZ_REQUEST = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'
const REQUEST_BODY = JSON.stringify({ email: 'ada@example.com' })
const REQUEST_HEAD = [
  'POST /auth/send-magic-link HTTP/1.1',
  'Host: localhost',
  'Content-Type: application/json',
  `Content-Length: ${REQUEST_BODY.length}`,
].join('\r\n')

describe('a server that drains', () => {
  test('answers a request whose body is still arriving, and closes its connection after the answer', async t => {
    const { server, client } = await open(t)
    client.write(`${REQUEST_HEAD}\r\n\r\n${REQUEST_BODY.slice(0, 5)}`)
    await onceInTime(server, 'request')
    const draining = server.drain()
    client.write(REQUEST_BODY.slice(5))
    const answer = await text(client)
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/)
    await draining
  })

  test('answers the first request of a connection that it had accepted, with Connection: close', async t => {
    const { server, client } = await open(t)
    const draining = server.drain()
    client.write(LIVEZ_REQUEST)
    assert.match(await text(client), /^HTTP\/1\.1 200 OK\r\n(.+\r\n)*connection: close\r\n/i)
    await draining
  })

  test("accepts and answers the connections that wait in the kernel's queue when it begins", async t => {
    const { server, port } = await open(t)
    const areConnected = new Int32Array(new SharedArrayBuffer(4))
    const clients = new Worker(new URL('../support/queued-clients.ts', import.meta.url), {
      workerData: { port, count: 50, request: LIVEZ_REQUEST, areConnected },
    })
    t.after(() => clients.terminate())
    const answersReceived = once(clients, 'message')
    // The event loop stands still until the kernel has completed all connections; the server has accepted none of them.
    assert.equal(Atomics.wait(areConnected, 0, 0, patienceMs()), 'ok')
    const draining = server.drain()
    const [answers] = await answersReceived
    assert.equal(answers.length, 50)
    for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/)
    await draining
  })

  test('closes a connection that has had its answer, and refuses new ones', async t => {
    const { server, client, port } = await open(t)
    client.write(LIVEZ_REQUEST)
    await onceInTime(client, 'data')
    const draining = server.drain()
    await onceInTime(client.resume(), 'close')
    await draining
    await assert.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
  })

  test('closes a connection that never sends a request', async t => {
    const { server, client } = await open(t)
    const draining = server.drain()
    await onceInTime(client.resume(), 'close')
    await draining
  })
})

/** A server and a connection to it that it has accepted. */
async function open(t: TestContext) {
  const { server, port } = await openServer('sqlite', t)
  const pendingConnection = once(server, 'connection')
  const client: Socket = connect(port, '127.0.0.1')
  t.after(() => client.destroy())
  await pendingConnection
  return { server, client, port }
}
