import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { createInbox, createInboxMailer } from '../../src/mail/inbox.ts'
import type { Mail } from '../../src/outbox/outbox.ts'
import { createSecrets } from '../../src/secrets.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { forEachEngine, openTestStorage } from '../support/engines.ts'

const from = { name: 'Keyway', address: 'no-reply@example.com' }
const neverAbortedSignal = new AbortController().signal

function mailTo(address: string, id: string, link: string | null = null): Mail {
  const recipient = parseEmailAddress(address)!
  return {
    messageId: id,
    to: recipient,
    subject: 'Hi',
    text: 't',
    html: 'h',
    template: 'login',
    link,
    code: '12345678',
  }
}

forEachEngine(engine => {
  test('the local inbox lists mails newest first, of all recipients or one', async t => {
    const { storage, secrets, clock } = await openTestStorage(engine, t)
    const mailer = createInboxMailer({ storage, secrets, clock, from })
    const inbox = createInbox({ storage, secrets, clock })
    for (const name of ['a', 'b', 'a']) {
      clock.advance(1)
      await mailer.deliver(mailTo(`${name}@example.com`, newId(clock.now())), neverAbortedSignal)
    }
    assert.deepEqual(
      (await inbox.list(null)).map(item => item.to),
      ['a@example.com', 'b@example.com', 'a@example.com'],
    )
    const [item, ...others] = await inbox.list(parseEmailAddress('b@example.com'))
    assert.equal(others.length, 0)
    assert.equal(item!.code, '12345678')
    assert.equal(item!.createdAt, clock.now() - 1)
  })

  test('a link is printed once, also when its mail is delivered repeatedly', async t => {
    const { storage, secrets, clock } = await openTestStorage(engine, t)
    const links: string[] = []
    const announce = ({ link }: { link: string }) => void links.push(link)
    const mailer = createInboxMailer({ storage, secrets, clock, from, announce })
    const mail = mailTo('a@example.com', newId(clock.now()), 'http://localhost/verify?token=x')
    await mailer.deliver(mail, neverAbortedSignal)
    await mailer.deliver(mail, neverAbortedSignal)
    await mailer.deliver(mailTo('a@example.com', newId(clock.now())), neverAbortedSignal)
    assert.deepEqual(links, ['http://localhost/verify?token=x'])
    assert.equal((await createInbox({ storage, secrets, clock }).list(null)).length, 2)
  })

  test('the inbox keeps mails for a day, at most 200', async t => {
    const { storage, secrets, clock } = await openTestStorage(engine, t)
    const mailer = createInboxMailer({ storage, secrets, clock, from })
    const inbox = createInbox({ storage, secrets, clock })
    for (let n = 0; n < 203; n++) {
      clock.advance(1)
      await mailer.deliver(mailTo(`u${n}@example.com`, newId(clock.now())), neverAbortedSignal)
    }
    const items = await inbox.list(null)
    assert.equal(items.length, 200)
    assert.equal(items[0]!.to, 'u202@example.com')
    clock.advance(DAY - 1)
    assert.equal((await inbox.list(null)).length, 1)
    clock.advance(1)
    assert.equal((await inbox.list(null)).length, 0)
  })

  test('mails in the inbox are sealed; those under a missing secret are left out', async t => {
    const { storage, secrets, clock } = await openTestStorage(engine, t)
    const mail = mailTo('a@example.com', newId(clock.now()), 'http://localhost/verify?token=SECRETTOKEN')
    await createInboxMailer({ storage, secrets, clock, from }).deliver(mail, neverAbortedSignal)
    const [row] = await storage.store.inbox.list(null, 10)
    assert.doesNotMatch(JSON.stringify(row), /SECRETTOKEN|12345678/)
    const otherSecrets = createSecrets([Buffer.alloc(32, 9)])
    assert.deepEqual(await createInbox({ storage, secrets: otherSecrets, clock }).list(null), [])
  })
})
