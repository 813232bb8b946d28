import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR, MINUTE, SECOND } from '../../src/clock.ts'
import {
  DEVICE_CODE_LIFETIME,
  generateUserCode,
  MAX_SIGN_IN_AGE,
  POLL_INTERVAL,
  USER_CODE_LETTERS,
} from '../../src/device-authorizations/device-authorization.ts'
import { DEVICE_REQUEST_LIMITS, type Grant } from '../../src/device-authorizations/device-authorizations.ts'
import { newId } from '../../src/ids.ts'
import { WRONG_CODES_PER_MAILBOX, WRONG_CODES_UNRECOGNISED } from '../../src/magic-links/code-limits.ts'
import { forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, refusedWith, type Services } from '../support/services.ts'

const ADA = 'ada@example.com'
const DEVICE_REQUEST = {
  clientId: 'keyway-cli',
  scopes: ['keys:create', 'agent:connect'],
  resource: null,
  deviceName: 'laptop',
}

forEachEngine(engine => {
  test('a device polls, a person approves its typed code, and the next poll is granted', async t => {
    const services = await openServices(engine, t)
    const { deviceAuthorizations, clock } = services
    const codes = await requestCodes(services)
    assert.match(codes.userCode, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
    assert.deepEqual([codes.expiresIn, codes.interval], [600, 5])
    assert.equal(await poll(services, codes), 'authorization_pending')
    const person = await signInPerson(services)
    const typedUserCode = codes.userCode.toLowerCase().replace('-', ' ')
    const foundAuthorization = await deviceAuthorizations.findByTypedCode(
      typedUserCode,
      { email: address(ADA) },
      caller(),
    )
    assert.equal(foundAuthorization!.deviceName, 'laptop')
    assert.equal(
      await deviceAuthorizations.decide(foundAuthorization!.id, 'approved', person, caller()),
      'done',
    )
    assert.equal(
      await deviceAuthorizations.decide(foundAuthorization!.id, 'denied', person, caller()),
      'not_pending',
    )
    clock.advance(POLL_INTERVAL)
    assert.equal(await poll(services, codes), 'granted')
    assert.equal(await poll(services, codes), 'invalid_grant')
  })

  test('a link of a device is found with its own code only, while it is pending', async t => {
    const services = await openServices(engine, t)
    const { deviceAuthorizations, clock } = services
    const [device, otherDevice] = [await requestCodes(services), await requestCodes(services)]
    assert.ok(await deviceAuthorizations.findByLink(device.ticket, device.userCode))
    assert.equal(await deviceAuthorizations.findByLink(device.ticket, otherDevice.userCode), null)
    assert.equal(await deviceAuthorizations.findByLink(otherDevice.userCode, device.userCode), null)
    assert.equal(await deviceAuthorizations.findByLink(device.ticket, 'nonsense'), null)
    clock.advance(DEVICE_CODE_LIFETIME)
    assert.equal(await deviceAuthorizations.findByLink(device.ticket, device.userCode), null)
  })

  test('a device that polls too fast is answered with slow_down, and must wait five seconds longer each time', async t => {
    const services = await openServices(engine, t)
    const codes = await requestCodes(services)
    assert.equal(await poll(services, codes), 'authorization_pending')
    services.clock.advance(POLL_INTERVAL - 1)
    assert.equal(await poll(services, codes), 'slow_down')
    services.clock.advance(POLL_INTERVAL + 5 * SECOND - 1)
    assert.equal(await poll(services, codes), 'slow_down')
    services.clock.advance(POLL_INTERVAL + 10 * SECOND)
    assert.equal(await poll(services, codes), 'authorization_pending')
  })

  test('a device code is refused once denied or expired, and to every other client', async t => {
    const services = await openServices(engine, t)
    const [denied, expiring, foreign] = [
      await requestCodes(services),
      await requestCodes(services),
      await requestCodes(services),
    ]
    await decide(services, denied, 'denied')
    assert.equal(await poll(services, denied), 'access_denied')
    await decide(services, foreign, 'approved')
    assert.equal(await poll(services, foreign, 'another-client'), 'invalid_grant')
    assert.equal(await poll(services, { deviceCode: 'nonsense' }), 'invalid_grant')
    services.clock.advance(DEVICE_CODE_LIFETIME - 1)
    assert.equal(await poll(services, expiring), 'authorization_pending')
    services.clock.advance(1)
    assert.equal(await poll(services, expiring), 'expired_token')
    assert.equal(await poll(services, foreign), 'expired_token')
  })

  test('an approved device code polled by twenty at once on two nodes is redeemed once', async t => {
    const services = await openServices(engine, t)
    const node = await services.opened.reopen()
    const otherNode = await openServices(engine, t, { on: { node, of: services.opened } })
    const codes = await requestCodes(services)
    await decide(services, codes, 'approved')
    const polls = await Promise.all(
      Array.from({ length: 20 }, (_, index) => poll(index % 2 ? services : otherNode, codes)),
    )
    assert.equal(polls.filter(outcome => outcome === 'granted').length, 1)
    assert.equal(polls.filter(outcome => outcome === 'invalid_grant').length, 19)
  })

  test('nothing is granted once the sign-in that approved was ended', async t => {
    const services = await openServices(engine, t)
    const codes = await requestCodes(services)
    const { user, session } = await decide(services, codes, 'approved')
    await services.sessions.end(user.id, session.id, caller())
    assert.equal(await poll(services, codes), 'access_denied')
  })

  test('nothing is granted to a person who was suspended after approving', async t => {
    const services = await openServices(engine, t)
    const codes = await requestCodes(services)
    const { user } = await decide(services, codes, 'approved')
    await services.users.suspend(user.id)
    assert.equal(await poll(services, codes), 'access_denied')
  })

  test('approving needs a sign-in of the last 30 minutes; denying does not', async t => {
    const services = await openServices(engine, t)
    const person = await signInPerson(services)
    services.clock.advance(MAX_SIGN_IN_AGE - 1)
    const [early, late] = [await requestCodes(services), await requestCodes(services)]
    const idOf = async ({ ticket, userCode }: typeof early) =>
      (await services.deviceAuthorizations.findByLink(ticket, userCode))!.id
    assert.equal(
      await services.deviceAuthorizations.decide(await idOf(early), 'approved', person, caller()),
      'done',
    )
    services.clock.advance(1)
    assert.equal(
      await services.deviceAuthorizations.decide(await idOf(late), 'approved', person, caller()),
      'stale',
    )
    assert.equal(
      await services.deviceAuthorizations.decide(await idOf(late), 'denied', person, caller()),
      'done',
    )
  })

  test('wrong user codes count as wrong codes of strangers, whoever types them, and links still work', async t => {
    const services = await openServices(engine, t)
    const codes = await requestCodes(services)
    for (let tries = 0; tries < WRONG_CODES_PER_MAILBOX; tries++)
      assert.equal(await typeCode(services, otherCode(codes.userCode), ADA, `192.0.${tries}.1`), 'unknown')
    assert.equal(await typeCode(services, codes.userCode, ADA, '198.51.100.1'), 'rate_limited')
    assert.equal(await typeCode(services, codes.userCode, 'bob@example.com', '198.51.100.1'), 'found')
    for (let tries = WRONG_CODES_PER_MAILBOX; tries < WRONG_CODES_UNRECOGNISED; tries++)
      assert.equal(
        await typeCode(services, otherCode(codes.userCode), `p${tries}@example.com`, `192.0.${tries}.1`),
        'unknown',
      )
    assert.equal(await typeCode(services, codes.userCode, 'eve@example.com', '203.0.113.1'), 'rate_limited')
    assert.ok(await services.deviceAuthorizations.findByLink(codes.ticket, codes.userCode))
  })

  test('text that cannot be a user code is no guess and is not counted', async t => {
    const services = await openServices(engine, t)
    for (const typed of ['', 'BCDF', 'BCDF-GHJA', 'BCDF-GHJ1', 'B'.repeat(100)])
      assert.equal(await typeCode(services, typed), 'unknown')
    assert.deepEqual(await services.store.wrongCodes.findCounted('', services.clock.now() - HOUR), [])
  })

  test('a network may begin a limited number of device authorizations in a minute', async t => {
    const services = await openServices(engine, t)
    const { limit } = DEVICE_REQUEST_LIMITS[0]!
    for (let count = 0; count < limit; count++) await requestCodes(services)
    assert.equal(await refusedWith(requestCodes(services)), 'rate_limited')
    await requestCodes(services, '198.51.100.1')
    services.clock.advance(2 * MINUTE)
    await requestCodes(services)
  })
})

test('user codes are drawn uniformly from twenty unambiguous letters', () => {
  assert.equal(new Set(USER_CODE_LETTERS).size, 20)
  assert.doesNotMatch(USER_CODE_LETTERS, /[AEIOUY0-9]/)
  const counts = new Map<string, number>()
  const codes = Array.from({ length: 20_000 }, generateUserCode)
  for (const letter of codes.join('')) counts.set(letter, (counts.get(letter) ?? 0) + 1)
  const expected = (codes.length * 8) / 20
  const chiSquare = [...USER_CODE_LETTERS].reduce(
    (sum, letter) => sum + ((counts.get(letter) ?? 0) - expected) ** 2 / expected,
    0,
  )
  assert.ok(chiSquare < 75, `chi-square of 19 degrees of freedom: ${chiSquare}`)
})

function requestCodes({ deviceAuthorizations }: Services, ip?: string) {
  return deviceAuthorizations.request(DEVICE_REQUEST, caller(ip))
}

async function poll(
  { deviceAuthorizations, clock }: Services,
  { deviceCode }: { deviceCode: string },
  clientId = 'keyway-cli',
): Promise<string> {
  const grant: Grant<string> = { sessionId: newId(clock.now()), open: async () => 'granted' }
  const outcome = await deviceAuthorizations.poll({ deviceCode, clientId }, grant)
  return 'granted' in outcome ? outcome.granted : outcome.refused
}

async function signInPerson(services: Services) {
  const { token } = await services.sendTo(ADA)
  return services.magicLinks.verify({ token, email: address(ADA) }, 'page', caller())
}

async function decide(
  services: Services,
  { ticket, userCode }: { ticket: string; userCode: string },
  decision: 'approved' | 'denied',
) {
  const person = await signInPerson(services)
  const foundAuthorization = await services.deviceAuthorizations.findByLink(ticket, userCode)
  assert.equal(
    await services.deviceAuthorizations.decide(foundAuthorization!.id, decision, person, caller()),
    'done',
  )
  return person
}

async function typeCode(services: Services, code: string, email = ADA, ip?: string): Promise<string> {
  const foundAuthorization = services.deviceAuthorizations.findByTypedCode(
    code,
    { email: address(email) },
    caller(ip),
  )
  return foundAuthorization.then(
    one => (one ? 'found' : 'unknown'),
    error => error.code,
  )
}

function otherCode(code: string): string {
  let generated: string
  do generated = generateUserCode()
  while (generated === code.replace('-', ''))
  return generated
}
