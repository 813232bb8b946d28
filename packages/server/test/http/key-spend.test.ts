import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { basicAuthorization, openServer } from '../support/http.ts'

/** An app that may charge Ada, who has two dollars. */
async function withShop(engine: EngineName, t: TestContext) {
  const server = await openServer(engine, t)
  const { tokens, user } = await server.signIn('ada@example.com')
  const token = tokens.accessToken
  const appHeaders = basicAuthorization('shop', await server.registerApp('shop'))
  await server.call('PUT', '/v1/me/charge-authorizations/shop', { token })
  let chargeNumber = 0
  const charge = (amount: string, key_id?: unknown) =>
    server.post(
      '/v1/charges',
      { user_id: user.id, amount, description: 'a call', key_id },
      { headers: { ...appHeaders, 'Idempotency-Key': `charge-${chargeNumber++}-00000000` } },
    )
  const introspect = async (key: string) =>
    (await server.post('/auth/introspect', { token: key }, { headers: appHeaders })).body
  return { server, token, charge, introspect }
}

forEachEngine(engine => {
  test('a charge over the spend limit of its key is 402 with the wait until the next day, and introspection shows what remains', async t => {
    const { server, token, charge, introspect } = await withShop(engine, t)
    const createdKey = await server.createKey(token, {
      app_id: 'shop',
      limits: {
        spend: [
          { amount: '0.50', per: 'day' },
          { amount: '1', per: 'total' },
        ],
      },
    })
    const chargeAnswer = await charge('0.30', createdKey.id)
    assert.deepEqual([chargeAnswer.status, chargeAnswer.body.key_id], [201, createdKey.id])
    const refusal = await charge('0.21', createdKey.id)
    assert.deepEqual(
      [refusal.status, refusal.body.code, refusal.headers.get('retry-after')],
      [402, 'spend_limit_reached', String(12 * 3600)],
    )
    assert.deepEqual((await introspect(createdKey.key)).limits.spend, [
      { per: 'day', amount: '0.50', remaining: '0.20', reset_seconds: 12 * 3600 },
      { per: 'total', amount: '1.00', remaining: '0.70' },
    ])
    assert.equal((await charge('0.20', createdKey.id)).status, 201)
    const ledger = await server.get('/v1/me/ledger', { token })
    assert.deepEqual(
      ledger.body.data.map(({ key_id }: { key_id: string | null }) => key_id),
      [createdKey.id, createdKey.id, null],
    )
  })

  test('a key_id that names no active key of the user is refused alike, whatever it is', async t => {
    const { server, token, charge } = await withShop(engine, t)
    const { id } = await server.createKey(token)
    await server.call('DELETE', `/v1/api-keys/${id}`, { token })
    const answers = await Promise.all(
      [id, '019aa2c4-6f00-7c1a-9d55-0a8b6b9d2f11', 'no-uuid', ''].map(key => charge('0.10', key)),
    )
    for (const { status, body } of answers)
      assert.deepEqual(
        [status, body.code, body.detail],
        [403, 'charge_not_authorized', answers[0]!.body.detail],
      )
    assert.equal((await charge('0.10', 7)).status, 400)
    assert.equal((await charge('0.10', null)).status, 201)
  })
})
