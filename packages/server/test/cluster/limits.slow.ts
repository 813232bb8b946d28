import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { MINUTE } from '../../src/clock.ts'
import { postgresMissing } from '../support/engines.ts'
import { startNodeProcess } from '../support/node-processes.ts'
import { call, createPrintedLinks, freshPostgres, signIn } from '../support/nodes.ts'

const RUN_SECONDS = 60
/** Few, since many new connections of a network that is refused often are closed (http/connection-guard.ts). */
const CONNECTIONS_PER_NODE = 16
const LIMITS = [
  { limit: 600, per: 'minute', seconds: 60 },
  { limit: 100, per: 'second', seconds: 1 },
] as const

const SETUPS = [
  { place: 'SQLite', count: 1, settings: async () => ({}) },
  { place: 'one node with PostgreSQL', count: 1, settings: postgresSettings },
  { place: 'two nodes', count: 2, settings: postgresSettings },
]

describe('limits in real time', { skip: postgresMissing(), timeout: 10 * MINUTE }, () => {
  for (const { place, count, settings: settingsFor } of SETUPS) {
    for (const { limit, per, seconds } of LIMITS) {
      test(`of three times ${limit} requests per ${per} the limit passes within 5 % over one minute, on ${place}`, async t => {
        const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS_PER_NODE })
        t.after(() => agent.destroy())
        const links = createPrintedLinks()
        const settings = await settingsFor(t)
        const nodes = await Promise.all(
          Array.from({ length: count }, () => startNodeProcess(t, settings, links)),
        )
        const session = await signIn(nodes[0]!.origin, links, 'loaded@example.com')
        const body = { limits: { requests: [{ limit, per }] } }
        const createdKey = await call(nodes[0]!.origin, 'POST', '/v1/api-keys', {
          token: session.access_token,
          body,
        })
        const perSecond = (3 * limit) / seconds
        const startedAt = performance.now()
        let sentCount = 0
        let passedCount = 0
        const pendingExchanges: Promise<void>[] = []
        const otherOutcomes: string[] = []
        const send = async (n: number): Promise<void> => {
          const status = await exchange(nodes[n % count]!.origin, createdKey.body.key, agent)
          if (status === 200) passedCount++
          else if (status !== 429) otherOutcomes.push(String(status))
        }
        for (let now = 0; now < RUN_SECONDS * 1000; now = performance.now() - startedAt) {
          while (sentCount < (now / 1000) * perSecond)
            pendingExchanges.push(send(sentCount++).catch(error => void otherOutcomes.push(String(error))))
          await wait(5)
        }
        await Promise.all(pendingExchanges)
        assert.deepEqual(otherOutcomes, [])
        const expected = (limit * RUN_SECONDS) / seconds
        t.diagnostic(`${passedCount} of ${expected} passed, of ${sentCount} sent`)
        assert.ok(Math.abs(passedCount - expected) <= 0.05 * expected, `${passedCount} of ${expected}`)
      })
    }
  }
})

async function postgresSettings(t: TestContext): Promise<Record<string, string>> {
  return { KEYWAY_DATABASE_URL: await freshPostgres(t) }
}

async function exchange(origin: string, key: string, agent: Agent): Promise<number> {
  const headers = { 'Content-Type': 'application/json' }
  const outgoing = request(`${origin}/auth/agent-token`, { method: 'POST', agent, headers })
  outgoing.end(JSON.stringify({ api_key: key }))
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  await once(response.resume(), 'end')
  return response.statusCode!
}
