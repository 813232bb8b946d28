import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { MINUTE } from '../../src/clock.ts'
import { postgresMissing } from '../support/engines.ts'
import { startNodeProcess } from '../support/node-processes.ts'
import { call, createPrintedLinks, exchange, freshPostgres, signIn } from '../support/nodes.ts'

const SECONDS = 60
const LIMITS = [
  { limit: 600, per: 'minute', seconds: 60 },
  { limit: 100, per: 'second', seconds: 1 },
] as const

describe('limits in real time', { skip: postgresMissing(), timeout: 10 * MINUTE }, () => {
  for (const count of [1, 2]) {
    for (const { limit, per, seconds } of LIMITS) {
      test(`three times ${limit} per ${per} is let through within 5 % of it over one minute, on ${count} nodes`, async t => {
        const url = await freshPostgres(t)
        const links = createPrintedLinks()
        const settings = { KEYWAY_DATABASE_URL: url }
        const nodes = await Promise.all(
          Array.from({ length: count }, () => startNodeProcess(t, settings, links)),
        )
        const person = await signIn(nodes[0]!.origin, links, 'loaded@example.com')
        const body = { limits: { requests: [{ limit, per }] } }
        const made = await call(nodes[0]!.origin, 'POST', '/v1/api-keys', {
          token: person.access_token,
          body,
        })
        const perSecond = (3 * limit) / seconds
        const started = performance.now()
        let sent = 0
        let passed = 0
        const answering: Promise<void>[] = []
        const others: string[] = []
        const send = async (n: number): Promise<void> => {
          const { status, body } = await exchange(nodes[n % count]!.origin, made.body.key)
          if (status === 200) passed++
          else if (status !== 429) others.push(JSON.stringify(body))
        }
        for (let now = 0; now < SECONDS * 1000; now = performance.now() - started) {
          while (sent < (now / 1000) * perSecond)
            answering.push(send(sent++).catch(error => void others.push(String(error))))
          await wait(5)
        }
        await Promise.all(answering)
        assert.deepEqual(others, [])
        const wanted = (limit * SECONDS) / seconds
        t.diagnostic(`${passed} of ${wanted} passed, of ${sent} sent`)
        assert.ok(Math.abs(passed - wanted) <= 0.05 * wanted, `${passed} of ${wanted}`)
      })
    }
  }
})
