import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createImportedKeys } from '../../src/api-keys/imported-keys.ts'
import { createLastUsed } from '../../src/api-keys/last-used.ts'
import { newId } from '../../src/ids.ts'
import type { Storage } from '../../src/store.ts'
import { caller, openServices } from '../support/services.ts'

/** A buffer of key uses. `batches` has the sizes of the batches that it passes to `notices` before it stores them. */
async function openLastUsed(t: TestContext) {
  const { storage, clock } = await openServices('sqlite', t)
  const batches = { uses: [] as number[], networks: [] as number[] }
  const lastUsed = createLastUsed({
    storage,
    clock,
    notices: {
      notifyOfReuse: async uses => void batches.uses.push(uses.size),
      noteNetworks: async uses => void batches.networks.push(uses.length),
    },
  })
  return {
    lastUsed,
    batches,
    idsOf: (count: number) => Array.from({ length: count }, () => newId(clock.now())),
  }
}

test('uses are stored 500 keys at a time, and each once', async t => {
  const { lastUsed, batches, idsOf } = await openLastUsed(t)
  for (const id of idsOf(1001)) lastUsed.note(id, caller())
  await lastUsed.flush()
  assert.deepEqual(batches, { uses: [500, 500, 1], networks: [500, 500, 1] })
  await lastUsed.flush()
  assert.equal(batches.uses.length, 3)
})

test('of one key, an earlier use is kept if its network differs, for at most 10,000 such uses', async t => {
  const { lastUsed, batches, idsOf } = await openLastUsed(t)
  const [id] = idsOf(1)
  lastUsed.note(id!, caller('192.0.2.1'))
  lastUsed.note(id!, caller('192.0.2.1'))
  lastUsed.note(id!, caller('192.0.2.2'))
  await lastUsed.flush()
  assert.deepEqual(batches.networks, [1, 1])
  batches.networks.length = 0
  for (const each of idsOf(10_001))
    for (const address of ['192.0.2.1', '192.0.2.2']) lastUsed.note(each, caller(address))
  await lastUsed.flush()
  assert.equal(batches.networks.slice(0, 20).join(), Array(20).fill(500).join())
  assert.equal(
    batches.networks.reduce((sum, size) => sum + size),
    10_000 + 10_001,
  )
})

test('uses of at most 100,000 keys are buffered, of which each may be used again', async t => {
  const { lastUsed, batches, idsOf } = await openLastUsed(t)
  const ids = idsOf(100_001)
  for (const id of ids) lastUsed.note(id, caller())
  lastUsed.note(ids[0]!, caller())
  await lastUsed.flush()
  assert.equal(
    batches.uses.reduce((sum, size) => sum + size),
    100_000,
  )
})

test('a text of up to 512 characters may be an imported key, if there are any', async t => {
  const { storage, log } = await openServices('sqlite', t)
  const mayBeKey = async (exist: boolean) => {
    const apiKeys = { ...storage.store.apiKeys, hasImported: async () => exist }
    const storageWithKeys = { ...storage, store: { ...storage.store, apiKeys } } as Storage
    const importedKeys = createImportedKeys({ storage: storageWithKeys, log })
    await importedKeys.load()
    return ['x', 'x'.repeat(512), 'x'.repeat(513), '', 'svr_x', 'sva_x', 'eyJx.x.x'].map(
      importedKeys.mayBeKey,
    )
  }
  assert.deepEqual(await mayBeKey(true), [true, true, false, false, false, false, false])
  assert.deepEqual(await mayBeKey(false), Array(7).fill(false))
})

test('a key with an expiry in the past, and limits of an unknown key, are refused', async t => {
  const { apiKeys, signIn, clock } = await openServices('sqlite', t)
  const { user } = await signIn('ada@example.com')
  const newKey = { name: null, scopes: null, appId: 'service-sdk', allowedNetworks: [] }
  await assert.rejects(apiKeys.create(user.id, { ...newKey, expiresAt: clock.now() }, caller()), {
    code: 'invalid_request',
    extras: {
      errors: [
        {
          field: 'expires_at',
          message: 'must lie in the future, for example "2030-01-01T00:00:00Z"',
        },
      ],
    },
  })
  await assert.rejects(
    apiKeys.setOperatorLimits(newId(clock.now()), { requests: [], spend: [], quota: null }),
    { code: 'not_found' },
  )
})
