import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MINUTE } from '../../src/clock.ts'
import { createJourney } from '../support/journey.ts'
import { runCommand } from './command.ts'
import { startKeyway } from './running.ts'

const ADA = 'ada@example.com'

test('users show lists mails with their state, windows, keys, sessions and suppression, and no secret', async t => {
  const { services, url } = await startKeyway(t, { KEYWAY_MAGIC_LINK_LIMITS: '3/minute,20/hour' })
  const journey = createJourney(url)
  await journey.sendLink(ADA)
  const token = await journey.readToken(ADA)
  const session = await journey.verify(ADA, token)
  const { key, id } = await journey.createKey(session.access_token, 'laptop')
  for (let sent = 0; sent < 2; sent++) await journey.sendLink(ADA)
  await services.suppressions.record({ addresses: [ADA], reason: 'bounce' }, 'postmark')

  const { data, text } = await runCommand(services, 'users show', ADA)
  assert.equal(data.user.email, ADA)
  assert.deepEqual([data.suppression.reason, data.suppression.provider], ['bounce', 'postmark'])
  const minuteWindow = data.windows.find(
    (each: { who: string; window: string }) => each.who === 'address' && each.window === 'minute',
  )
  assert.deepEqual([minuteWindow.used, minuteWindow.limit], [3, 3])
  assert.ok(Date.parse(minuteWindow.free_at) - services.clock.now() <= MINUTE)
  assert.deepEqual(
    data.keys.map((each: { id: string; status: string }) => [each.id, each.status]),
    [[id, 'active']],
  )
  assert.equal(data.sessions.length, 1)
  assert.ok(
    data.mails.some(
      (each: { kind: string; state: string }) => each.kind === 'sign_in' && each.state === 'sent',
    ),
  )
  for (const words of ['SUPPRESSED\n  bounce', '3 of 3', 'full until', 'laptop'])
    assert.ok(text.includes(words), words)
  const wholeOutput = text + JSON.stringify(data)
  for (const secret of [key, token, session.access_token, session.refresh_token])
    assert.ok(!wholeOutput.includes(secret))
})

test('users show accepts an address without account if mail to it was requested', async t => {
  const { services, url } = await startKeyway(t)
  await createJourney(url).sendLink('new@example.com')
  const { data, text } = await runCommand(services, 'users show', 'new@example.com')
  assert.equal(data.user, null)
  assert.equal(data.mails[0].kind, 'sign_in')
  assert.match(text, /has no account/)
  await assert.rejects(runCommand(services, 'users show', 'nobody@example.com'), { code: 'not_found' })
})

test('clear-limits empties every window of an address', async t => {
  const { services, url } = await startKeyway(t, { KEYWAY_MAGIC_LINK_LIMITS: '1/hour' })
  const journey = createJourney(url)
  await journey.sendLink(ADA)
  await assert.rejects(journey.sendLink(ADA), /rate_limited/)
  assert.deepEqual((await runCommand(services, 'users clear-limits', ADA)).data, {
    email: ADA,
    cleared: true,
  })
  await journey.sendLink(ADA)
})

test('mail unsuppress lifts a suppression, and reports if there was none', async t => {
  const { services } = await startKeyway(t)
  await services.suppressions.record({ addresses: [ADA], reason: 'complaint' }, 'resend')
  assert.deepEqual((await runCommand(services, 'mail unsuppress', ADA)).data, { email: ADA, lifted: true })
  assert.deepEqual((await runCommand(services, 'mail unsuppress', ADA)).data, { email: ADA, lifted: false })
  await assert.rejects(runCommand(services, 'mail unsuppress', 'nonsense'), /one e-mail address/)
})
