import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resealAll } from '../../src/operations/reseal.ts'
import { createSecrets } from '../../src/secrets.ts'
import { SIGNING_ALGS } from '../../src/signing-keys/signing-key.ts'
import { createSealedStore } from '../../src/storage/reseal.ts'
import { aMessage, aSigningKey, insertUser, NOW } from '../contract/fixtures.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'

/** Fills two batches of 200 and a part of a third. */
const ROW_COUNT = 450

forEachEngine(engine => {
  test('all sealed values are re-encrypted, also in several batches', async t => {
    const { storage, secrets: old } = await openTestStorage(engine, t)
    await insertUser(storage.store)
    await storage.transaction(async tx => {
      for (let row = 0; row < ROW_COUNT; row++) {
        const message = aMessage({ createdAt: NOW + row })
        const sealedContent = old.seal('mail', Buffer.from(`mail ${row}`), message.id)
        await tx.outbox.insert({ ...message, sealedContent })
      }
    })
    const newAndOldSecrets = createSecrets([Buffer.alloc(32, 9), Buffer.alloc(32, 7)])
    const store = createSealedStore(storage.engine)
    const report = await resealAll(store, newAndOldSecrets)
    assert.deepEqual(report, { resealed: ROW_COUNT, unopened: [] })
    assert.deepEqual(await store.sealedWithOtherSecrets('messages', newAndOldSecrets.fingerprint, '', 1), [])
    const newSecretOnly = createSecrets([Buffer.alloc(32, 9)])
    const rows = await storage.store.outbox.lease(NOW + ROW_COUNT, NOW + 2 * ROW_COUNT, ROW_COUNT)
    const openedContents = rows.map(({ id, sealedContent }) =>
      newSecretOnly.open('mail', sealedContent!, id).toString(),
    )
    assert.equal(new Set(openedContents).size, ROW_COUNT)
  })

  test('the signing keys of every algorithm are re-encrypted', async t => {
    const { storage, secrets: old } = await openTestStorage(engine, t)
    const { signingKeys } = storage.store
    for (const alg of SIGNING_ALGS) {
      const key = aSigningKey({ alg })
      await signingKeys.insertFirst({
        ...key,
        sealedPrivateKey: old.seal('signing-key', Buffer.from(alg), key.id),
      })
    }
    const newAndOldSecrets = createSecrets([Buffer.alloc(32, 9), Buffer.alloc(32, 7)])
    const report = await resealAll(createSealedStore(storage.engine), newAndOldSecrets)
    assert.deepEqual(report, { resealed: SIGNING_ALGS.length, unopened: [] })
    const newSecretOnly = createSecrets([Buffer.alloc(32, 9)])
    const keys = await signingKeys.list(NOW)
    assert.equal(keys.length, SIGNING_ALGS.length)
    for (const { id, alg, sealedPrivateKey } of keys)
      assert.equal(newSecretOnly.open('signing-key', sealedPrivateKey, id).toString(), alg)
  })
})
