import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent } from '../src/agent.ts'
import { platformWebSocket } from './support/agents.ts'
import { startDroppingProxy } from './support/dropping-proxy.ts'
import { startKeyway } from './support/keyway-server.ts'

/** How long the proxy drops packets: shorter than the agent's detection time, equal, and longer. */
const OUTAGES_S = [5, 20, 33, 36, 50, 65, 90]
/** 25 s of silence, 10 s without a pong, and a tolerance for a busy machine. */
const DETECTED_WITHIN_S = 36
const RECONNECTED_WITHIN_S = 40

test('an agent reconnects after dropped packets, in real time', { timeout: 240_000 }, async t => {
  const { url, keyway } = await startKeyway(t)
  const { key } = await keyway.apiKeys.create()
  const results = await Promise.all(OUTAGES_S.map(outage => measure(outage)))
  for (const { outage, detectedAfterS, reconnectedAfterS } of results) {
    const notice =
      detectedAfterS === undefined ? 'not detected' : `detected after ${detectedAfterS.toFixed(1)} s`
    t.diagnostic(
      `silent for ${outage} s: ${notice}, reconnected ${reconnectedAfterS.toFixed(1)} s after the end of the outage`,
    )
  }
  for (const { outage, detectedAfterS, reconnectedAfterS } of results) {
    assert.ok(
      reconnectedAfterS <= RECONNECTED_WITHIN_S,
      `silent for ${outage} s, reconnected after ${reconnectedAfterS} s`,
    )
    if (outage > DETECTED_WITHIN_S)
      assert.ok((detectedAfterS ?? Number.POSITIVE_INFINITY) <= DETECTED_WITHIN_S)
  }

  async function measure(outage: number) {
    const proxy = await startDroppingProxy(t, url)
    const agent = new Agent({ url: proxy.url, apiKey: key, WebSocket: platformWebSocket })
    t.after(() => agent.close())
    await nextEvent(agent, 'ready')
    await wait(1000)
    proxy.dropPackets()
    const startedAt = performance.now()
    let detectedAfterS: number | undefined
    agent.once('disconnected', () => {
      detectedAfterS = (performance.now() - startedAt) / 1000
      assert.equal(agent.connected, false)
    })
    await wait(outage * 1000)
    const detectedInOutageAfterS = detectedAfterS
    const restoredAt = performance.now()
    proxy.restore()
    await nextEvent(agent, 'ready')
    return {
      outage,
      detectedAfterS: detectedInOutageAfterS,
      reconnectedAfterS: (performance.now() - restoredAt) / 1000,
    }
  }
})

function nextEvent(agent: Agent, event: 'ready'): Promise<unknown> {
  return new Promise(resolve => agent.once(event, resolve))
}
