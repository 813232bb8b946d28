import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { examineAll } from '../../src/operations/doctor.ts'
import { openServices } from '../../src/services.ts'
import { postgresMissing } from '../support/engines.ts'
import {
  connectHub,
  createKey,
  createPrintedLinks,
  exchange,
  NODE_SETTINGS,
  refresh,
  revokeKey,
  signIn,
  startNode,
} from '../support/nodes.ts'
import { poolerMissing, startPooler } from '../support/pooler.ts'
import { createEmptyDatabase } from '../support/postgres.ts'

/** So many that some get a connection to PostgreSQL that another client of the pooler used before. */
const PEOPLE = 10

describe('behind PgBouncer in transaction mode', { skip: postgresMissing() || poolerMissing() }, () => {
  test('two nodes migrate, sign in, exchange, connect and revoke; doctor reports that the timeouts are dropped', async t => {
    const { url, pooled } = await pooledDatabase(t)
    const settings = { KEYWAY_DATABASE_URL: pooled, KEYWAY_EVENTS_URL: url }
    const links = createPrintedLinks()
    const nodes = [await startNode(t, settings, links), await startNode(t, settings, links)]
    const [a, b] = nodes.map(({ origin }) => origin) as [string, string]
    await Promise.all(
      Array.from({ length: PEOPLE }, async (_, n) => {
        const [origin, otherOrigin] = n % 2 === 0 ? [a, b] : [b, a]
        const session = await signIn(origin, links, `pooled${n}@example.com`)
        const { id, key } = (await createKey(otherOrigin, session.access_token)).body
        const exchangeAnswers = await Promise.all([
          exchange(origin, key),
          exchange(otherOrigin, key),
          exchange(origin, key),
        ])
        assert.deepEqual(
          exchangeAnswers.map(({ status }) => status),
          [200, 200, 200],
        )
        assert.equal((await refresh(otherOrigin, session.refresh_token)).status, 200)
        const { closed } = await connectHub(otherOrigin, exchangeAnswers[0]!.body.token)
        await revokeKey(origin, session.access_token, id)
        assert.equal((await closed).code, 4410)
        assert.equal((await exchange(otherOrigin, key)).body.code, 'api_key_revoked')
      }),
    )
    const services = nodes[0]!.services
    const databaseFinding = async () =>
      (await examineAll(services)).find(({ check }) => check === 'database')!
    const finding = await databaseFinding()
    assert.equal(finding.ok, false)
    assert.match(finding.detail, /drops the timeouts .*Behind PgBouncer/)
  })

  test('a start behind a pooler that refuses the timeouts fails and says what to set', async t => {
    const { url } = await pooledDatabase(t)
    using strictPooler = await startPooler(url, '')
    const settings = { ...NODE_SETTINGS, KEYWAY_DATABASE_URL: strictPooler.url, KEYWAY_EVENTS_URL: url }
    await assert.rejects(openServices(loadConfig(settings), createLog('silent')), {
      name: 'CannotStart',
      message: /The pooler refuses: .*Set its ignore_startup_parameters/,
    })
  })
})

async function pooledDatabase(t: TestContext): Promise<{ url: string; pooled: string }> {
  const { url, drop } = await createEmptyDatabase()
  const pooler = await startPooler(url)
  t.after(async () => {
    pooler[Symbol.dispose]()
    await drop()
  })
  return { url, pooled: pooler.url }
}
