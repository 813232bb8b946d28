import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { WebSocketServer } from 'ws'
import { createJourney } from '../support/journey.ts'
import { serve, temporaryFolder } from '../support/serve.ts'
import { type CheckResult, runConformance } from './conformance.ts'

function failuresOf(results: CheckResult[]): string[] {
  return results
    .filter(({ outcome }) => outcome === 'failed')
    .map(({ check, why }) => `${check.promise}: ${why}`)
}

test('this hub passes every conformance check of docs/hub-protocol.md', async t => {
  const folder = temporaryFolder()
  const server = await serve({ KEYWAY_DATA_DIR: folder.path, KEYWAY_PORT: '0' })
  t.after(async () => {
    await server.end('SIGKILL')
    folder.remove()
  })
  const journey = createJourney(server.url)
  await journey.sendLink('ada@example.com')
  const session = await journey.verify('ada@example.com', await journey.readToken('ada@example.com'))
  const { key } = await journey.createKey(session.access_token, 'conformance')
  const results = await runConformance({ url: server.url, key, accessToken: session.access_token })
  assert.deepEqual(failuresOf(results), [])
  assert.ok(results.filter(({ outcome }) => outcome === 'ok').length >= 30)
  assert.ok(results.every(({ outcome, check }) => outcome !== 'skipped' || check.slow))
})

test('a hub that accepts every client and echoes its frames fails the conformance checks', async t => {
  const httpServer = createServer((_, response) =>
    response.end('{"token":"x","agent_id":"y","expires_in":900}'),
  )
  const hub = new WebSocketServer({ server: httpServer, perMessageDeflate: true })
  hub.on('connection', socket => {
    socket.on('error', () => {})
    socket.on('message', data => socket.send(String(data) || '{}'))
    socket.send('{"type":"ready","connection_id":"1"}')
  })
  httpServer.listen(0, '127.0.0.1')
  await once(httpServer, 'listening')
  t.after(() => {
    for (const socket of hub.clients) socket.terminate()
    httpServer.close()
  })
  const url = `http://127.0.0.1:${(httpServer.address() as AddressInfo).port}`
  const results = await runConformance({ url, key: 'svc_x', deadlineMs: 200 })
  assert.ok(failuresOf(results).length >= 20, failuresOf(results).join('\n'))
})
