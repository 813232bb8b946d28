import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent } from '../src/agent.ts'
import { platformWebSocket } from './support/agents.ts'
import { startDroppingProxy } from './support/dropping-proxy.ts'
import { startKeyway } from './support/keyway-server.ts'

/** How long the proxy drops packets: shorter than the agent's detection time, equal, and longer. */
const SILENCES_S = [5, 20, 33, 36, 50, 65, 90]
/** 25 s of silence, 10 s without a pong, and a tolerance for a busy machine. */
const NOTICED_WITHIN_S = 36
const BACK_WITHIN_S = 40

test('an agent reconnects after dropped packets, in real time', { timeout: 240_000 }, async t => {
  const { url, keyway } = await startKeyway(t)
  const { key } = await keyway.apiKeys.create()
  const results = await Promise.all(SILENCES_S.map(silence => live(silence)))
  for (const { silence, noticedAfter, back } of results) {
    const notice = noticedAfter === undefined ? 'not detected' : `detected after ${noticedAfter.toFixed(1)} s`
    t.diagnostic(`silent for ${silence} s: ${notice}, back ${back.toFixed(1)} s after the return`)
  }
  for (const { silence, noticedAfter, back } of results) {
    assert.ok(back <= BACK_WITHIN_S, `silent for ${silence} s, back after ${back} s`)
    if (silence > NOTICED_WITHIN_S) assert.ok((noticedAfter ?? Number.POSITIVE_INFINITY) <= NOTICED_WITHIN_S)
  }

  async function live(silence: number) {
    const proxy = await startDroppingProxy(t, url)
    const agent = new Agent({ url: proxy.url, apiKey: key, WebSocket: platformWebSocket })
    t.after(() => agent.close())
    await next(agent, 'ready')
    await wait(1000)
    proxy.swallow()
    const silentAt = performance.now()
    let noticedAfter: number | undefined
    agent.once('disconnected', () => {
      noticedAfter = (performance.now() - silentAt) / 1000
      assert.equal(agent.connected, false)
    })
    await wait(silence * 1000)
    const toldBefore = noticedAfter
    const returnedAt = performance.now()
    proxy.restore()
    await next(agent, 'ready')
    return { silence, noticedAfter: toldBefore, back: (performance.now() - returnedAt) / 1000 }
  }
})

function next(agent: Agent, event: 'ready'): Promise<unknown> {
  return new Promise(resolve => agent.once(event, resolve))
}
