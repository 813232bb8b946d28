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
const CONCURRENT_HANDSHAKES = 100
const TOKEN_LIFETIME_MS = 900_000
/** Remaining lifetime of the first tokens when the renewal begins. */
const REMAINING_MS = 300_000
/** How far the hub's clock advances between two pings: less than the 60 s after which silent connections are closed. */
const STEP_MS = 26_000

interface Connection {
  socket: WebSocket
  pings: number
  accepted: number | undefined
  expiresIn: number
  closed: number | undefined
}

test('10,000 connections on one node renew in place without a disconnect', { timeout: 300_000 }, async t => {
  await using hub = await startHubProcess()
  const firstTokens = await hub.tokens(AGENTS + SPARE_AGENTS, USERS)
  const emptyMeasurement = await hub.measure()
  await hub.advance(TOKEN_LIFETIME_MS - REMAINING_MS)

  const startedAt = performance.now()
  const connections: Connection[] = []
  for (let at = 0; at < firstTokens.length; at += CONCURRENT_HANDSHAKES) {
    connections.push(
      ...(await Promise.all(
        firstTokens.slice(at, at + CONCURRENT_HANDSHAKES).map(token => open(hub.url, token)),
      )),
    )
  }
  const connectMs = performance.now() - startedAt
  const fullMeasurement = await hub.measure()
  assert.equal(fullMeasurement.connections, AGENTS + SPARE_AGENTS)
  const [agents, spares] = [connections.slice(0, AGENTS), connections.slice(AGENTS)]

  const secondTokens = await hub.tokens(AGENTS, USERS)
  const sentAt = performance.now()
  for (const [n, { socket }] of agents.entries()) {
    socket.send(JSON.stringify({ type: 'token', token: secondTokens[n] }))
  }
  await until(() =>
    agents.every(connection => connection.accepted !== undefined || connection.closed !== undefined),
  )
  const renewalMs = agents.map(connection => (connection.accepted ?? Number.NaN) - sentAt)
  assert.ok(agents.every(connection => connection.expiresIn > REMAINING_MS / 1000))

  // Past the expiry of every first token: renewed connections stay open, the others are closed.
  for (let passed = 0; passed <= REMAINING_MS; passed += STEP_MS) {
    const pingsBefore = agents.map(connection => connection.pings)
    await hub.advance(STEP_MS)
    await until(() =>
      agents.every((connection, n) => connection.pings > pingsBefore[n]! || connection.closed !== undefined),
    )
  }
  await until(() => spares.every(connection => connection.closed !== undefined))
  const finalMeasurement = await hub.measure()

  const growthPerConnection = (what: 'heapBytes' | 'residentBytes') =>
    ((fullMeasurement[what] - emptyMeasurement[what]) / fullMeasurement.connections / 1024).toFixed(1)
  t.diagnostic(`connected ${connections.length} in ${(connectMs / 1000).toFixed(1)} s`)
  t.diagnostic(
    `renewed at once: p50 ${ms(quantile(renewalMs, 0.5))}, p99 ${ms(quantile(renewalMs, 0.99))}, last ${ms(Math.max(...renewalMs))}`,
  )
  t.diagnostic(
    `a connection: ${growthPerConnection('heapBytes')} KiB of heap, ${growthPerConnection('residentBytes')} KiB resident`,
  )
  t.diagnostic(`one tick ${finalMeasurement.tickMs.toFixed(2)} ms`)
  t.diagnostic(`drops ${agents.filter(connection => connection.closed !== undefined).length} of ${AGENTS}`)
  assert.deepEqual([...new Set(spares.map(connection => connection.closed))], [4408])
  assert.equal(agents.filter(connection => connection.closed !== undefined).length, 0)
  assert.equal(finalMeasurement.connections, AGENTS)
  for (const { socket } of agents) socket.terminate()
})

function open(url: string, token: string): Promise<Connection> {
  const socket = new WebSocket(url, 'keyway.hub.v1', { headers: { authorization: `Bearer ${token}` } })
  const connection: Connection = { socket, pings: 0, accepted: undefined, expiresIn: 0, closed: undefined }
  socket.on('ping', () => connection.pings++)
  return new Promise((resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', code => {
      connection.closed = code
      reject(new Error(`closed with ${code} before ready`))
    })
    socket.on('message', data => {
      const frame: ServerFrame = JSON.parse(String(data))
      if (frame.type === 'ready') resolve(connection)
      if (frame.type !== 'token_accepted') return
      connection.accepted = performance.now()
      connection.expiresIn = frame.expires_in
    })
  })
}

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await new Promise(resolve => setTimeout(resolve, 10))
}

function ms(value: number): string {
  return `${Math.round(value)} ms`
}
