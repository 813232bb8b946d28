import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Finding } from '../../src/administration/finding.ts'
import { type PostgresServer, startPostgresServer } from '../faults/postgres-server.ts'
import { keyway, keywayProcess, outputOf } from '../support/command-line.ts'
import { postgresMissing } from '../support/engines.ts'
import {
  createKey,
  createPrintedLinks,
  exchange,
  NODE_SETTINGS,
  signIn,
  startNode,
} from '../support/nodes.ts'
import { until } from '../support/patience.ts'
import { databaseUrl, withClient } from '../support/postgres.ts'
import { startProxy } from '../support/proxy.ts'

describe('a standby', { skip: postgresMissing(), concurrency: true }, () => {
  for (const synchronous of [true, false]) {
    const title = synchronous
      ? 'that replicates synchronously passes doctor, with an ordinary database user'
      : 'that replicates asynchronously is reported by doctor, with an ordinary database user'
    test(title, async t => {
      const primary = await startPostgresServer()
      t.after(() => primary.remove())
      const url = await createDatabaseOfOrdinaryUser(primary)
      const standby = await primary.startStandby(synchronous)
      t.after(() => standby.remove())
      const settings = { ...NODE_SETTINGS, KEYWAY_DATABASE_URL: url }
      await outputOf(keyway(settings, 'migrate'))

      assert.equal((await standbysFinding(settings)).ok, synchronous)
      if (!synchronous)
        assert.match(
          (await standbysFinding(settings)).detail,
          /KEYWAY_JOURNAL_DIR .* run "keyway journal replay" after a failover/,
        )
    })
  }

  test('that replicates synchronously is reported by doctor if the COMMIT of the role does not wait for it', async t => {
    const primary = await startPostgresServer()
    t.after(() => primary.remove())
    const url = await createDatabaseOfOrdinaryUser(primary)
    const standby = await primary.startStandby(true)
    t.after(() => standby.remove())
    await withClient(primary.url, client => client.query('alter role service set synchronous_commit = local'))
    const settings = { ...NODE_SETTINGS, KEYWAY_DATABASE_URL: url }
    await outputOf(keyway(settings, 'migrate'))
    assert.equal((await standbysFinding(settings)).ok, false)
  })

  test('that the database URL leads to is not used until it is promoted, since its rows may be old', async t => {
    const primary = await startPostgresServer()
    t.after(() => primary.remove())
    const standby = await primary.startStandby(true)
    t.after(() => standby.remove())
    const proxy = await startProxy(primary.url, t)
    const links = createPrintedLinks()
    const node = await startNode(
      t,
      { KEYWAY_DATABASE_URL: proxy.through(databaseUrl(primary.url, 'postgres')) },
      links,
    )
    const { access_token: token } = await signIn(node.origin, links, 'ada@example.com')
    const { key } = (await createKey(node.origin, token)).body

    proxy.forwardTo(standby.url)
    assert.equal((await exchange(node.origin, key)).status, 503)
    await standby.promote()
    await until('exchanges succeed again', async () => (await exchange(node.origin, key)).status === 200)
  })
})

/** Creates a database that is owned by a role without other privileges; returns its URL. */
async function createDatabaseOfOrdinaryUser({ url }: PostgresServer): Promise<string> {
  await withClient(url, async client => {
    await client.query('create role service login')
    await client.query('create database service owner service')
  })
  const serviceUrl = new URL(databaseUrl(url, 'service'))
  serviceUrl.username = 'service'
  return serviceUrl.href
}

async function standbysFinding(settings: Record<string, string>): Promise<Finding> {
  const { out } = await keywayProcess(settings, 'doctor', '--json')
  const { findings } = JSON.parse(out) as { findings: Finding[] }
  return findings.find(({ check }) => check === 'standbys')!
}
