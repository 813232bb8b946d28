import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Client } from './client.ts'
import { fuzzFrames } from './support/frame-fuzzer.ts'
import { type HubProcess, startHubProcess } from './support/hub-process.ts'

const WARM_UP_SECONDS = 10
const SECONDS = Number(process.env.FUZZ_SECONDS ?? 60)
/** Tolerated growth of the heap between two garbage collections. */
const HEAP_SLACK_BYTES = 4 * 1024 * 1024

test(`fuzzed frames for ${SECONDS} s neither crash the hub nor leak memory or sockets`, {
  timeout: 300_000,
}, async t => {
  await using hub = await startHubProcess()
  const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
  t.diagnostic(`FUZZ_SEED=${seed}`)
  const [own = '', ...tokens] = await hub.tokens(10, 5)
  const witness = new Client(hub.url, own)
  await witness.next('ready')
  const attack = (seconds: number) => fuzzFrames({ port: hub.port, tokens, witness, seconds, seed })

  await attack(WARM_UP_SECONDS) // compiles the code and fills pools and caches
  const measuredBefore = await measureAfterCleanup(hub)
  const report = await attack(SECONDS)
  const measuredAfter = await measureAfterCleanup(hub)

  t.diagnostic(
    `${report.connections} connections, ${report.writes} writes, ${(report.bytes / 2 ** 20).toFixed(0)} MiB`,
  )
  t.diagnostic(`closes ${JSON.stringify(report.closes)}`)
  t.diagnostic(`the honest connection waited ${report.slowestPong.toFixed(0)} ms at most`)
  t.diagnostic(`before ${JSON.stringify(measuredBefore)}`)
  t.diagnostic(`after  ${JSON.stringify(measuredAfter)}`)
  assert.equal(measuredAfter.connections, 1)
  assert.ok(measuredAfter.resources <= measuredBefore.resources, 'sockets or timers were left')
  assert.ok(measuredAfter.heapBytes - measuredBefore.heapBytes < HEAP_SLACK_BYTES, 'the heap grew')
  assert.ok(!witness.closed)
  witness.socket.terminate()
})

/** Measures after the last hostile socket has closed and its presence row was deleted. */
async function measureAfterCleanup(hub: HubProcess) {
  await wait(4000)
  await hub.measure()
  await wait(500)
  return hub.measure()
}
