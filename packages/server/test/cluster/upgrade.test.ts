import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createLog } from '../../src/log.ts'
import { createStorage } from '../../src/storage/database.ts'
import { migrate } from '../../src/storage/migrate.ts'
import { MIGRATIONS } from '../../src/storage/migrations/index.ts'
import { defineMigration } from '../../src/storage/migrations/migration.ts'
import { postgresConfig, postgresMissing } from '../support/engines.ts'
import {
  connectHub,
  createKey,
  createPrintedLinks,
  exchange,
  freshPostgres,
  refresh,
  revokeKey,
  signIn,
  startNode,
} from '../support/nodes.ts'

/** What the next minor version may do: add. */
const next = defineMigration('9999-next-version', async ({ db }) => {
  for (const table of ['users', 'api_keys', 'sessions', 'messages', 'apps', 'magic_links'])
    await db.schema.alterTable(table).addColumn('of_the_next_version', 'text').execute()
})

describe('neighbouring versions', { skip: postgresMissing(), timeout: 60_000 }, () => {
  test('a node goes on serving while the next version migrates the database under it', async t => {
    const url = await freshPostgres(t)
    const links = createPrintedLinks()
    const node = await startNode(t, { KEYWAY_DATABASE_URL: url }, links)
    const person = await signIn(node.origin, links, 'before@example.com')
    const { id, key } = (await createKey(node.origin, person.access_token)).body
    const connection = await connectHub(node.origin, (await exchange(node.origin, key)).body.token)

    const newer = await createStorage(postgresConfig(url), createLog('silent'))
    t.after(() => newer.close())
    await migrate(newer.engine, true, createLog('silent'), [...MIGRATIONS, next])

    // Every connection of the pool has its own prepared statements, so each must be asked.
    const exchanges = await Promise.all(Array.from({ length: 50 }, () => exchange(node.origin, key)))
    assert.deepEqual(new Set(exchanges.map(answer => answer.status)), new Set([200]))
    const again = await refresh(node.origin, person.refresh_token)
    assert.equal(again.status, 200)
    assert.equal((await createKey(node.origin, again.body.access_token)).status, 201)
    await signIn(node.origin, links, 'after@example.com')
    await revokeKey(node.origin, again.body.access_token, id)
    assert.equal((await connection.closed).code, 4410)

    // One of this version that is restarted meanwhile comes back.
    const restarted = await startNode(t, { KEYWAY_DATABASE_URL: url }, links)
    assert.equal((await createKey(restarted.origin, again.body.access_token)).status, 201)
  })
})
