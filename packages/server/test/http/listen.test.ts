import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createNetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ConfigError, loadConfig } from '../../src/config.ts'
import { holdFreePort, listen } from '../../src/http/listen.ts'
import { onceInTime } from '../support/patience.ts'

test('a port picked by the system is bound before and after the service listens on it', async t => {
  const { config, holder } = await holdFreePort(testConfig(t))
  t.after(() => holder.close())
  assert.equal(await errorOfListening(config.port), 'EADDRINUSE')
  const server = createServer((_, response) => response.end('served'))
  t.after(() => server.close())
  await listen(server, config, holder)
  assert.equal((server.address() as AddressInfo).port, config.port)
  assert.equal(await errorOfListening(config.port), 'EADDRINUSE')
  assert.equal(await (await fetch(`http://127.0.0.1:${config.port}`)).text(), 'served')
})

test('a connection before the service is ready is closed, and the port is released after a failed start', async t => {
  const { config, holder } = await holdFreePort(testConfig(t))
  const earlyClient = connect(config.port, '127.0.0.1')
  earlyClient.on('error', () => {})
  await onceInTime(earlyClient, 'close')
  holder.close()
  await onceInTime(holder, 'close')
  const { port, host } = config
  const nextServer = createNetServer().listen(port, host)
  await once(nextServer, 'listening')
  t.after(() => nextServer.close())
})

test('the public URL and the verify URL have the port picked by the system', async t => {
  const { config, holder } = await holdFreePort(testConfig(t))
  t.after(() => holder.close())
  assert.equal(new URL(config.publicUrl).port, String(config.port))
  assert.equal(new URL(config.verifyUrl).port, String(config.port))
})

test('a port in use is refused with the steps that resolve it', async t => {
  const occupyingServer = createNetServer().listen(0, '127.0.0.1')
  await once(occupyingServer, 'listening')
  t.after(() => occupyingServer.close())
  const { port } = occupyingServer.address() as AddressInfo
  const pendingListen = listen(createServer(), { ...testConfig(t), port })
  await assert.rejects(pendingListen, (error: unknown) => {
    assert(error instanceof ConfigError)
    assert.match(error.message, new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is in use`))
    return true
  })
})

function testConfig(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'keyway-listen-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return loadConfig({ KEYWAY_PORT: '0', KEYWAY_DATA_DIR: folder })
}

async function errorOfListening(port: number): Promise<string> {
  const server = createNetServer().listen(port, '127.0.0.1')
  const pendingListen = once(server, 'listening').then(() => 'none')
  const code = await pendingListen.catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown')
  server.close()
  return code
}
