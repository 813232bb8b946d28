import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { freePort } from '../../server/test/support/free-port.ts'
import { Agent } from '../src/agent.ts'
import { platformWebSocket } from './support/agents.ts'
import { TEST_KEY } from './support/protocol-server.ts'
import { record } from './support/recorder.ts'

test('`disconnected` says why the service cannot be reached: its name, its port or its certificate', async t => {
  const serverWithoutTls = createServer(socket => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(
    0,
    '127.0.0.1',
  )
  t.after(() => void serverWithoutTls.close())
  await once(serverWithoutTls, 'listening')
  for (const [url, cause, advice] of [
    ['http://keyway.invalid', 'dns', /its name does not resolve/],
    [`http://127.0.0.1:${await freePort()}`, 'refused', /it refuses connections/],
    [
      `https://127.0.0.1:${(serverWithoutTls.address() as AddressInfo).port}`,
      'tls',
      /its certificate was not accepted/,
    ],
  ] as const) {
    const agent = new Agent({ url, apiKey: TEST_KEY, WebSocket: platformWebSocket })
    t.after(() => agent.close())
    const event = await record(agent).disconnected.next()
    assert.deepEqual([event.code, event.reason, event.cause], [1006, 'network_error', cause])
    assert.match(event.error!.message, advice)
    agent.close()
  }
})
