import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Purpose, SealError } from '../../src/secrets.ts'
import { forEachEngine } from '../support/engines.ts'
import { openServices } from '../support/services.ts'

interface SealedValue {
  sealed: string
  purpose: Purpose
  /** The context that binds the value to its row. */
  context: string
}

forEachEngine(engine => {
  test('a value sealed for one row and column opens in no other', async t => {
    const services = await openServices(engine, t)
    const { secrets, store } = services
    const values: SealedValue[] = []
    for (const email of ['ann@example.com', 'bob@example.com'] as const) {
      const { session } = await services.signIn(email)
      const { id, sealedSecret } = (await store.sessions.find(session.id))!
      values.push({ sealed: sealedSecret, purpose: 'session-secret', context: id })
      for (const mail of await store.outbox.recentFor(email as never, 10))
        values.push({ sealed: mail.sealedContent!, purpose: 'mail', context: mail.id })
    }
    await services.signingKeys.currentOf('ES256')
    await services.signingKeys.rotate()
    for (const { id, sealedPrivateKey } of await store.signingKeys.list(0))
      values.push({ sealed: sealedPrivateKey, purpose: 'signing-key', context: id })
    const pepper = await store.instance.find('address-pepper')
    values.push({ sealed: pepper!, purpose: 'address-pepper', context: 'address-pepper' })

    const contexts = new Set(values.map(({ context }) => context))
    assert.equal(contexts.size, values.length, 'each row has its own context')
    assert.ok(values.length >= 11, `${values.length} sealed values`)
    for (const own of values) {
      assert.ok(secrets.open(own.purpose, own.sealed, own.context))
      for (const { purpose, context } of values) {
        if (context !== own.context)
          assert.throws(() => secrets.open(own.purpose, own.sealed, context), SealError, 'another row')
        if (purpose !== own.purpose)
          assert.throws(() => secrets.open(purpose, own.sealed, own.context), SealError, 'another column')
      }
    }
  })
})
