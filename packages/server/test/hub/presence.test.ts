import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPresence } from '../../src/hub/presence.ts'
import { recordedPresence } from '../../src/hub/recorded-presence.ts'
import { Registry } from '../../src/hub/registry.ts'
import { newId } from '../../src/ids.ts'
import { openTestStorage } from '../support/engines.ts'

test('a node that announces itself while the list of nodes is being read is kept', async t => {
  const { storage, clock, log } = await openTestStorage('sqlite', t)
  const store = recordedPresence({ storage, clock })
  const read = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const nodeId = newId(clock.now())
  const newcomer = newId(clock.now())
  const presence = createPresence({
    presence: {
      ...store,
      // Delays the result until the other node has announced itself.
      async nodes(since) {
        const rows = await store.nodes(since)
        read.resolve()
        await released.promise
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
  presence.markAlive(newcomer)
  released.resolve()
  await beating
  assert.deepEqual(presence.otherNodes(), [newcomer])

  await presence.heartbeat()
  assert.deepEqual(presence.otherNodes(), [], 'a node without a row is dropped by the next heartbeat')
})
