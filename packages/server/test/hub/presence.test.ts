import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPresence } from '../../src/hub/presence.ts'
import { Registry } from '../../src/hub/registry.ts'
import { newId } from '../../src/ids.ts'
import { openTestStorage } from '../support/engines.ts'

test('a node that greets while the list of nodes is being read is not forgotten', async t => {
  const { storage, clock, log } = await openTestStorage('sqlite', t)
  const store = storage.store.presence
  const read = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const nodeId = newId(clock.now())
  const newcomer = newId(clock.now())
  const presence = createPresence({
    presence: {
      ...store,
      // The database's answer is on its way while the other node says hello.
      async nodes(since) {
        const rows = await store.nodes(since)
        read.resolve()
        await goOn.promise
        return rows
      },
    },
    events: {},
    clock,
    log,
    registry: new Registry(),
    nodeId,
    version: '1',
  })

  const beating = presence.heartbeat()
  await read.promise
  presence.met(newcomer)
  goOn.resolve()
  await beating
  assert.deepEqual(presence.others(), [newcomer])

  await presence.heartbeat()
  assert.deepEqual(presence.others(), [], 'one that never recorded itself is gone with the next look')
})
