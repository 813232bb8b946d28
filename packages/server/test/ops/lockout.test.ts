import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bucketNamesOf } from '../../src/magic-links/send-limits.ts'
import { altered } from '../support/altered.ts'
import { forEachEngine } from '../support/engines.ts'
import { until } from '../support/patience.ts'
import { address, caller, openServices, race, refusedWith, type Services } from '../support/services.ts'
import { startKeyway } from './running.ts'
import { createFormBrowser } from './web-browser.ts'

const ADA = address('ada@example.com')
const LIMITS = [{ window: 'hour' as const, limit: 3 }]

function send(services: Services, isReturning: boolean, ip = '192.0.2.1') {
  return services.magicLinks.send({ email: ADA, appId: 'console', isReturning }, caller(ip))
}

forEachEngine(engine => {
  test('a stranger who uses up the sends of an address does not lock out a recognised browser', async t => {
    const services = await openServices(engine, t, { limits: LIMITS })
    for (let sent = 0; sent < 3; sent++) await send(services, false, '203.0.113.66')
    assert.equal(await refusedWith(send(services, false, '203.0.113.66')), 'rate_limited')
    for (let sent = 0; sent < 3; sent++) await send(services, true)
    assert.equal(await refusedWith(send(services, true)), 'rate_limited', 'and that bucket is no larger')
  })

  test('sends of recognised browsers do not count for the address, and twenty at once get exactly the limit', async t => {
    const services = await openServices(engine, t, { limits: LIMITS })
    const { won, refused } = await race(20, () => send(services, true))
    assert.deepEqual([won.length, refused.length], [3, 17])
    for (let sent = 0; sent < 3; sent++) await send(services, false)
    assert.equal(await refusedWith(send(services, false)), 'rate_limited')
  })

  test('the network limit applies to recognised browsers too', async t => {
    const networkLimits = [{ window: 'hour' as const, limit: 2 }]
    const services = await openServices(engine, t, { limits: LIMITS, networkLimits })
    for (let sent = 0; sent < 2; sent++) await send(services, true)
    assert.equal(await refusedWith(send(services, true)), 'rate_limited')
  })

  test('clear-limits clears both buckets of an address', async t => {
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

test('only a recognised browser may send while strangers have used up the sends of the address', async t => {
  const { url } = await startKeyway(t, { KEYWAY_MAGIC_LINK_LIMITS: '3/hour' })
  const requestLink = (browser: ReturnType<typeof createFormBrowser>) =>
    browser.submit('/sign-in', '/sign-in', { email: 'ada@example.com' })
  const ownBrowser = createFormBrowser(url)
  assert.equal((await requestLink(ownBrowser)).location, '/check-mail')
  const { code } = await newestMail(url)
  assert.match((await ownBrowser.submit('/check-mail', '/check-mail', { code })).location!, /^\/keys/)
  const marker = ownBrowser.cookies.get('keyway_returning')!
  assert.doesNotMatch(marker, /example/)
  await ownBrowser.submit('/keys', '/sign-out', {})

  const strangersBrowser = createFormBrowser(url)
  for (let sent = 0; sent < 2; sent++) assert.equal((await requestLink(strangersBrowser)).status, 303)
  assert.equal((await requestLink(strangersBrowser)).status, 429)
  assert.equal((await requestLink(ownBrowser)).location, '/check-mail')

  const forgersBrowser = createFormBrowser(url)
  forgersBrowser.cookies.set('keyway_returning', altered(marker))
  assert.equal((await requestLink(forgersBrowser)).status, 429)
  const thiefsBrowser = createFormBrowser(url)
  thiefsBrowser.cookies.set('keyway_returning', marker)
  const answerForEve = await thiefsBrowser.submit('/sign-in', '/sign-in', { email: 'eve@example.com' })
  assert.equal(answerForEve.status, 303, 'for another address the marker means nothing, and harms nothing')
})

function newestMail(url: string): Promise<{ code: string }> {
  return until('a mail', async () => {
    const answer = await fetch(`${url}/inbox`, { headers: { Accept: 'application/json' } })
    return ((await answer.json()) as { data: { code: string }[] }).data[0]
  })
}
