import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../../src/server.ts'
import { createJourney } from '../support/journey.ts'
import { startKeyway } from './running.ts'

test('the last use of a key is stored at shutdown', async t => {
  const server = await startKeyway(t)
  const journey = createJourney(server.url)
  const email = 'ada@example.com'
  await journey.sendLink(email)
  const { access_token } = await journey.verify(email, await journey.readToken(email))
  const { id, key } = await journey.createKey(access_token, 'laptop')
  await journey.exchange(key)
  const { config } = server.services
  await server.close()
  const restartedServer = await startServer({ ...config, port: 0 })
  t.after(() => restartedServer.close())
  const storedKeys = await restartedServer.services.storage.store.apiKeys.findMany([id])
  assert.notEqual(storedKeys[0]!.lastUsedAt, null)
})
