import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bucketNamesOf } from '../../src/magic-links/send-limits.ts'
import { forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, race, refusedWith, type Services } from '../support/services.ts'

const ADA = address('ada@example.com')
const LIMITS = [{ window: 'hour' as const, limit: 3 }]

function send(services: Services, isReturning: boolean, ip = '192.0.2.1') {
  return services.magicLinks.send({ email: ADA, appId: 'console', isReturning }, caller(ip))
}

forEachEngine(engine => {
  test('a stranger who uses up the sends of an address locks nobody out who signed in to it before', async t => {
    const services = await openServices(engine, t, { limits: LIMITS })
    for (let sent = 0; sent < 3; sent++) await send(services, false, '203.0.113.66')
    assert.equal(await refusedWith(send(services, false, '203.0.113.66')), 'rate_limited')
    for (let sent = 0; sent < 3; sent++) await send(services, true)
    assert.equal(await refusedWith(send(services, true)), 'rate_limited', 'and that bucket is no larger')
  })

  test('the other way round it takes nothing from the address, and twenty at once get exactly the limit', async t => {
    const services = await openServices(engine, t, { limits: LIMITS })
    const { won, refused } = await race(20, () => send(services, true))
    assert.deepEqual([won.length, refused.length], [3, 17])
    for (let sent = 0; sent < 3; sent++) await send(services, false)
    assert.equal(await refusedWith(send(services, false)), 'rate_limited')
  })

  test('the limit of a network holds for returning browsers too', async t => {
    const networkLimits = [{ window: 'hour' as const, limit: 2 }]
    const services = await openServices(engine, t, { limits: LIMITS, networkLimits })
    for (let sent = 0; sent < 2; sent++) await send(services, true)
    assert.equal(await refusedWith(send(services, true)), 'rate_limited')
  })

  test('clearing the limits of an address clears both of its buckets', async t => {
    const services = await openServices(engine, t, { limits: LIMITS })
    for (let sent = 0; sent < 3; sent++) {
      await send(services, true)
      await send(services, false)
    }
    for (const bucket of bucketNamesOf(ADA)) await services.store.magicLinks.clearSends(bucket)
    await send(services, true)
    await send(services, false)
  })
})
