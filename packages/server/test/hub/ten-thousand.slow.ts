import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ServerFrame } from '@keyway/sdk/protocol'
import { WebSocket } from 'ws'
import { quantile } from '../support/nodes.ts'
import { startHubProcess } from './support/hub-process.ts'

const AGENTS = 10_000
const SPARE_AGENTS = 20
const USERS = 100
/** Concurrent handshakes: a real fleet spreads its reconnects over seconds, too. */
const AT_ONCE = 100
const TOKEN_MS = 900_000
/** Remaining lifetime of the first tokens when the renewal begins. */
const LEFT_MS = 300_000
/** Less than the 60 s after which the hub terminates silent connections; pings are answered in between. */
const STEP_MS = 26_000

interface Line {
  socket: WebSocket
  pings: number
  accepted: number | undefined
  expiresIn: number
  closed: number | undefined
}

test('10,000 connections on one node renew in place without a disconnect', { timeout: 300_000 }, async t => {
  await using hub = await startHubProcess()
  const first = await hub.tokens(AGENTS + SPARE_AGENTS, USERS)
  const before = await hub.measure()
  await hub.advance(TOKEN_MS - LEFT_MS)

  const began = performance.now()
  const lines: Line[] = []
  for (let at = 0; at < first.length; at += AT_ONCE) {
    lines.push(...(await Promise.all(first.slice(at, at + AT_ONCE).map(token => open(hub.url, token)))))
  }
  const connected = performance.now() - began
  const full = await hub.measure()
  assert.equal(full.connections, AGENTS + SPARE_AGENTS)
  const [agents, spares] = [lines.slice(0, AGENTS), lines.slice(AGENTS)]

  const second = await hub.tokens(AGENTS, USERS)
  const asked = performance.now()
  for (const [n, { socket }] of agents.entries()) {
    socket.send(JSON.stringify({ type: 'token', token: second[n] }))
  }
  await until(() => agents.every(line => line.accepted !== undefined || line.closed !== undefined))
  const waits = agents.map(line => (line.accepted ?? Number.NaN) - asked)
  assert.ok(agents.every(line => line.expiresIn > LEFT_MS / 1000))

  // Past the expiry of every first token: renewed connections stay open, the others are closed.
  for (let passed = 0; passed <= LEFT_MS; passed += STEP_MS) {
    const pings = agents.map(line => line.pings)
    await hub.advance(STEP_MS)
    await until(() => agents.every((line, n) => line.pings > pings[n]! || line.closed !== undefined))
  }
  await until(() => spares.every(line => line.closed !== undefined))
  const after = await hub.measure()

  const grown = (what: 'heapBytes' | 'residentBytes') =>
    ((full[what] - before[what]) / full.connections / 1024).toFixed(1)
  t.diagnostic(`connected ${lines.length} in ${(connected / 1000).toFixed(1)} s`)
  t.diagnostic(
    `renewed at once: p50 ${ms(quantile(waits, 0.5))}, p99 ${ms(quantile(waits, 0.99))}, last ${ms(Math.max(...waits))}`,
  )
  t.diagnostic(`a connection: ${grown('heapBytes')} KiB of heap, ${grown('residentBytes')} KiB resident`)
  t.diagnostic(`one tick ${after.tickMs.toFixed(2)} ms`)
  t.diagnostic(`drops ${agents.filter(line => line.closed !== undefined).length} of ${AGENTS}`)
  assert.deepEqual([...new Set(spares.map(line => line.closed))], [4408])
  assert.equal(agents.filter(line => line.closed !== undefined).length, 0)
  assert.equal(after.connections, AGENTS)
  for (const { socket } of agents) socket.terminate()
})

function open(url: string, token: string): Promise<Line> {
  const socket = new WebSocket(url, 'keyway.hub.v1', { headers: { authorization: `Bearer ${token}` } })
  const line: Line = { socket, pings: 0, accepted: undefined, expiresIn: 0, closed: undefined }
  socket.on('ping', () => line.pings++)
  return new Promise((resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', code => {
      line.closed = code
      reject(new Error(`closed with ${code} before ready`))
    })
    socket.on('message', data => {
      const frame: ServerFrame = JSON.parse(String(data))
      if (frame.type === 'ready') resolve(line)
      if (frame.type !== 'token_accepted') return
      line.accepted = performance.now()
      line.expiresIn = frame.expires_in
    })
  })
}

async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise(resolve => setTimeout(resolve, 10))
}

function ms(value: number): string {
  return `${Math.round(value)} ms`
}
