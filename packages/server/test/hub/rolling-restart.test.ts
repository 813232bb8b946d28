import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent, type AgentDisconnected, type Json } from '@keyway/sdk'
import { DRAIN_AGENTS_MS } from '../../src/hub/drain.ts'
import { postgresMissing } from '../support/engines.ts'
import { createKey, createPrintedLinks, freshPostgres, signIn, startNode } from '../support/nodes.ts'
import { patienceMs, until } from '../support/patience.ts'

const AGENTS = 20

/** A round-robin TCP balancer in front of the nodes. */
async function startBalancer(t: TestContext, nodes: { port: number }[]): Promise<string> {
  let connectionCount = 0
  const balancer = createServer(client => {
    const node = connect(nodes[connectionCount++ % nodes.length]!.port, '127.0.0.1')
    client.on('error', () => node.destroy()).pipe(node)
    node.on('error', () => client.destroy()).pipe(client)
  })
  balancer.listen(0, '127.0.0.1')
  await once(balancer, 'listening')
  t.after(() => balancer.close())
  return `http://127.0.0.1:${(balancer.address() as AddressInfo).port}`
}

test('replacing nodes one after the other disconnects no agent, loses no message and doubles none', {
  skip: postgresMissing(),
}, async t => {
  const settings = { KEYWAY_DATABASE_URL: await freshPostgres(t) }
  const links = createPrintedLinks()
  const nodes = [await startNode(t, settings, links), await startNode(t, settings, links)]
  const url = await startBalancer(t, nodes)
  const session = await signIn(nodes[0]!.origin, links, 'rolling@example.com')
  const apiKey: string = (await createKey(nodes[0]!.origin, session.access_token)).body.key

  const disconnects: AgentDisconnected[] = []
  const gaps: unknown[] = []
  const received = Array.from({ length: AGENTS }, (): Json[] => [])
  const agents = received.map(messages => {
    const agent = new Agent({ url, apiKey })
    t.after(() => agent.close())
    return agent
      .on('disconnected', event => disconnects.push(event))
      .on('gap', gap => gaps.push(gap))
      .on('message', ({ data }) => messages.push(data))
  })
  await Promise.all(agents.map(agent => new Promise(resolve => agent.once('ready', resolve))))
  const sender = agents[0]!

  let sentCount = 0
  let isReplacing = true
  const sendingLoop = (async () => {
    const pendingSends: Promise<unknown>[] = []
    for (; isReplacing; sentCount++) {
      pendingSends.push(sender.send('all', sentCount))
      await wait(50)
    }
    await Promise.all(pendingSends)
  })()
  for (const old of [...nodes]) {
    nodes.splice(nodes.indexOf(old), 1, await startNode(t, settings, links))
    // The five seconds that the service takes may be too few for all agents on a busy machine.
    await old.hub.drain(patienceMs(DRAIN_AGENTS_MS))
    await old.close()
  }
  isReplacing = false
  await sendingLoop

  assert.deepEqual(disconnects, [])
  assert.deepEqual(gaps, [])
  const expectedNumbers = Array.from({ length: sentCount }, (_, n) => n)
  for (const messages of received.slice(1)) {
    await until('all messages have arrived', () => messages.length >= sentCount)
    assert.deepEqual(messages, expectedNumbers)
  }
  t.diagnostic(`${AGENTS} agents, ${sentCount} messages to each, two nodes replaced, no agent disconnected`)
})
