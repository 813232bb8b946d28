import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { DAY, MINUTE, SECOND } from '../../src/clock.ts'
import { loadConfig } from '../../src/config.ts'
import { newId } from '../../src/ids.ts'
import { createLocalizations } from '../../src/languages/localization.ts'
import type { Log } from '../../src/log.ts'
import { createSmtpMailer } from '../../src/mail/smtp.ts'
import { createMailWriter } from '../../src/mail/templates/mail-writer.ts'
import { GIVE_UP_AFTER, MAX_BACKOFF } from '../../src/outbox/backoff.ts'
import { DELIVERY_DEADLINE } from '../../src/outbox/delivery.ts'
import { createDispatcher, LEASE } from '../../src/outbox/dispatcher.ts'
import type { MessageContent } from '../../src/outbox/message.ts'
import { createOutbox, type Mail, type Mailer, MailRejected } from '../../src/outbox/outbox.ts'
import { createSecrets } from '../../src/secrets.ts'
import type { Storage } from '../../src/store.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { type EngineName, forEachEngine, openTestStorage } from '../support/engines.ts'
import { until } from '../support/patience.ts'
import { openServices } from '../support/services.ts'
import { startSmtpServer } from '../support/smtp.ts'
import { createTestTimers } from '../support/timers.ts'

const email = (text: string) => parseEmailAddress(text)!
const writeMail = createMailWriter({
  localizations: createLocalizations(),
  productName: 'Keyway',
  supportEmail: 'help@keyway.test',
  publicUrl: 'https://keyway.test',
  brand: loadConfig({}).brand,
})
const from = { name: 'Keyway', address: 'no-reply@keyway.test' }
const SMTP_WITHOUT_LOGIN = {
  kind: 'smtp',
  host: '127.0.0.1',
  secure: false,
  requireTls: false,
  user: null,
  password: null,
}

function smtpMailer(t: TestContext, port: number): Mailer {
  const mailer = createSmtpMailer({ ...SMTP_WITHOUT_LOGIN, kind: 'smtp', port }, { from })
  t.after(() => mailer.close())
  return mailer
}

/** A mailer whose outcomes the test sets; by default it accepts every mail. */
function createTestMailer() {
  const acceptedMails: Mail[] = []
  const watchers = new Set<() => void>()
  const mailer = {
    accepted: acceptedMails,
    attempts: 0,
    onDeliver: async (_mail: Mail, _signal: AbortSignal): Promise<void> => {},
    async deliver(mail: Mail, signal: AbortSignal) {
      mailer.attempts++
      for (const watcher of watchers) watcher()
      await mailer.onDeliver(mail, signal)
      acceptedMails.push(mail)
      for (const watcher of watchers) watcher()
    },
    until(done: () => boolean): Promise<void> {
      return new Promise(resolve => {
        const resolveIfDone = () => {
          if (!done()) return
          watchers.delete(resolveIfDone)
          resolve()
        }
        watchers.add(resolveIfDone)
        resolveIfDone()
      })
    },
    async check() {},
    close() {},
  }
  return mailer
}

async function openOutbox(engine: EngineName, t: TestContext) {
  const testStorage = await openTestStorage(engine, t)
  const { storage, clock, secrets, log } = testStorage
  const timers = createTestTimers(clock)
  const outbox = createOutbox({ secrets })
  const mailer = createTestMailer()

  async function enqueue(recipient: string, content: MessageContent = { kind: 'test' }, sendBefore?: number) {
    const now = clock.now()
    const message = { id: newId(now), recipient: email(recipient), userId: null, content, now, sendBefore }
    await storage.transaction(tx => outbox.enqueue(tx, message))
    return message.id
  }

  function newDispatcher(
    changes: { storage?: Storage; mailer?: Mailer; log?: Log; random?: () => number } = {},
  ) {
    return createDispatcher({
      storage,
      clock,
      secrets,
      mailer,
      write: writeMail,
      maySignUp: async () => true,
      log,
      schedule: timers.schedule,
      random: () => 1,
      ...changes,
    })
  }

  const lastMail = async (recipient: string) =>
    (await storage.store.outbox.recentFor(email(recipient), 1))[0]!
  const signIn = (): MessageContent => ({
    kind: 'sign_in',
    link: 'https://keyway.test/verify?token=SECRETTOKEN&email=a%40example.com',
    code: '12345678',
    expiresAt: clock.now() + 5 * MINUTE,
  })
  return { ...testStorage, timers, outbox, mailer, enqueue, newDispatcher, lastMail, signIn }
}

forEachEngine(engine => {
  describe('a queued mail', () => {
    test('is sent as soon as its transaction is durable', async t => {
      const { mailer, enqueue, newDispatcher } = await openOutbox(engine, t)
      const startedDispatcher = newDispatcher()
      startedDispatcher.start()
      await enqueue('ada@example.com')
      await mailer.until(() => mailer.accepted.length === 1)
      assert.equal(mailer.accepted[0]!.to, 'ada@example.com')
      await startedDispatcher.stop(1000)
    })

    test('is not queued when its transaction fails', async t => {
      const { storage, outbox, mailer, clock, newDispatcher } = await openOutbox(engine, t)
      const message = {
        id: newId(clock.now()),
        recipient: email('a@example.com'),
        userId: null,
        now: clock.now(),
      }
      await assert.rejects(
        storage.transaction(async tx => {
          await outbox.enqueue(tx, { ...message, content: { kind: 'test' } })
          throw new Error('rolled back')
        }),
      )
      assert.equal(await newDispatcher().drain(), 0)
      assert.equal(mailer.attempts, 0)
    })

    test('is queued once when its transaction is retried', async t => {
      const { storage, outbox, mailer, clock, newDispatcher } = await openOutbox(engine, t)
      const id = newId(clock.now())
      const message = { id, recipient: email('a@example.com'), userId: null, now: clock.now() }
      for (let n = 0; n < 3; n++) {
        await storage.transaction(tx => outbox.enqueue(tx, { ...message, content: { kind: 'test' } }))
      }
      assert.equal(await newDispatcher().drain(), 1)
      assert.equal(mailer.accepted.length, 1)
    })

    test('contains neither link nor code in the database', async t => {
      const { enqueue, lastMail, signIn } = await openOutbox(engine, t)
      await enqueue('a@example.com', signIn())
      assert.doesNotMatch(JSON.stringify(await lastMail('a@example.com')), /SECRETTOKEN|12345678|verify/)
    })

    test('is stored without content after delivery', async t => {
      const { enqueue, newDispatcher, lastMail, signIn } = await openOutbox(engine, t)
      await enqueue('a@example.com', signIn())
      await newDispatcher().drain()
      const row = await lastMail('a@example.com')
      assert.equal(row.state, 'sent')
      assert.equal(row.sealedContent, null)
    })

    test('is rendered for new or existing accounts by the state at delivery', async t => {
      const { storage, clock, mailer, enqueue, newDispatcher, signIn } = await openOutbox(engine, t)
      await enqueue('known@example.com', signIn())
      await enqueue('stranger@example.com', signIn())
      const user = { id: newId(clock.now()), email: email('known@example.com'), name: null, locale: null }
      await storage.transaction(tx =>
        tx.users.insert({ ...user, role: 'user', status: 'active', createdAt: clock.now(), deletesAt: null }),
      )
      await newDispatcher().drain()
      const templates = Object.fromEntries(mailer.accepted.map(mail => [mail.to, mail.template]))
      assert.deepEqual(templates, { 'known@example.com': 'login', 'stranger@example.com': 'signup' })
    })
  })

  describe('a temporarily failed delivery', () => {
    test('is retried with back-off under the same Message-ID until it succeeds', async t => {
      const { mailer, enqueue, newDispatcher, timers, clock, lastMail } = await openOutbox(engine, t)
      const ids = new Set<string>()
      mailer.onDeliver = async mail => {
        ids.add(mail.messageId)
        if (mailer.attempts < 4) throw new Error('451 try later')
      }
      const id = await enqueue('a@example.com')
      const retryingDispatcher = newDispatcher()
      const pausesInSeconds: number[] = []
      for (let n = 0; n < 3; n++) {
        assert.equal(await retryingDispatcher.drain(), 0)
        const retryPauseMs = (await lastMail('a@example.com')).nextAttemptAt - clock.now()
        pausesInSeconds.push(retryPauseMs / SECOND)
        timers.advance(retryPauseMs - 1)
        assert.equal(await retryingDispatcher.drain(), 0)
        assert.equal(mailer.attempts, n + 1, 'no attempt before its time')
        timers.advance(1)
      }
      assert.equal(await retryingDispatcher.drain(), 1)
      assert.deepEqual(pausesInSeconds, [2, 4, 8])
      assert.deepEqual([...ids], [id])
    })

    test('is retried by the dispatcher’s timer', async t => {
      const { mailer, enqueue, newDispatcher, timers, lastMail } = await openOutbox(engine, t)
      let isFailing = true
      mailer.onDeliver = async () => {
        if (isFailing) throw new Error('no')
      }
      const runningDispatcher = newDispatcher()
      runningDispatcher.start()
      await enqueue('a@example.com')
      await mailer.until(() => mailer.attempts === 1)
      isFailing = false
      while ((await lastMail('a@example.com')).leasedUntil !== null) await new Promise(setImmediate)
      while (!timers.pending().some(due => due <= 2 * SECOND)) await new Promise(setImmediate)
      timers.advance(2 * SECOND)
      await mailer.until(() => mailer.accepted.length === 1)
      await runningDispatcher.stop(1000)
    })

    test('is retried after at most a minute', async t => {
      const { mailer, enqueue, newDispatcher, timers, clock, lastMail } = await openOutbox(engine, t)
      let isDown = true
      mailer.onDeliver = async () => {
        if (isDown) throw new Error('ECONNREFUSED')
      }
      await enqueue('a@example.com', { kind: 'welcome', trialCredit: '2.00' })
      const runningDispatcher = newDispatcher()
      for (const start = clock.now(); clock.now() - start < 60 * MINUTE; timers.advance(MAX_BACKOFF)) {
        await runningDispatcher.drain()
      }
      assert.ok(mailer.attempts < 70, `${mailer.attempts} attempts in an hour`)
      isDown = false
      assert.ok((await lastMail('a@example.com')).nextAttemptAt <= clock.now() + MINUTE)
      timers.advance(MINUTE)
      assert.equal(await runningDispatcher.drain(), 1)
      assert.equal(mailer.accepted.length, 1)
    })

    test('fails after three days', async t => {
      const { mailer, enqueue, newDispatcher, timers, lastMail } = await openOutbox(engine, t)
      mailer.onDeliver = async () => {
        throw new Error('no')
      }
      await enqueue('a@example.com')
      timers.advance(3 * DAY)
      await newDispatcher().drain()
      const row = await lastMail('a@example.com')
      assert.equal(row.state, 'failed')
      assert.ok(row.sealedContent, 'kept, so that an administrator can send it again')
    })
  })

  test('a permanent refusal fails at once, with its reason and without the address', async t => {
    const { mailer, enqueue, newDispatcher, lastMail } = await openOutbox(engine, t)
    mailer.onDeliver = async () => {
      throw new MailRejected('550 5.1.1 <gone@example.com> unknown, see https://relay.test/x?token=1')
    }
    await enqueue('gone@example.com')
    assert.equal(await newDispatcher().drain(), 0)
    const row = await lastMail('gone@example.com')
    assert.equal(row.state, 'failed')
    assert.equal(mailer.attempts, 1)
    assert.equal(row.lastError, '550 5.1.1 <g***@example.com> unknown, see <url>')
  })

  describe('a sign-in mail', () => {
    test('with one minute of validity left is sent', async t => {
      const { enqueue, newDispatcher, timers, signIn } = await openOutbox(engine, t)
      await enqueue('a@example.com', signIn())
      timers.advance(4 * MINUTE)
      assert.equal(await newDispatcher().drain(), 1)
    })

    test('with less than a minute of validity left is not sent', async t => {
      const { mailer, enqueue, newDispatcher, timers, signIn, lastMail } = await openOutbox(engine, t)
      await enqueue('a@example.com', signIn())
      timers.advance(4 * MINUTE + 1)
      assert.equal(await newDispatcher().drain(), 0)
      assert.equal(mailer.attempts, 0)
      const row = await lastMail('a@example.com')
      assert.equal(row.state, 'expired')
      assert.equal(row.sealedContent, null)
    })

    test('that cannot be delivered in time is dropped', async t => {
      const { mailer, enqueue, newDispatcher, timers, signIn, lastMail } = await openOutbox(engine, t)
      mailer.onDeliver = async () => {
        throw new Error('451 later')
      }
      await enqueue('a@example.com', signIn())
      for (let n = 0; n < 12; n++, timers.advance(30 * SECOND)) await newDispatcher().drain()
      assert.equal((await lastMail('a@example.com')).state, 'expired')
    })
  })

  test('a recipient whose server hangs delays no other mail, and is retried after its deadline', async t => {
    const { mailer, enqueue, newDispatcher, timers, lastMail } = await openOutbox(engine, t)
    mailer.onDeliver = mail =>
      mail.to === 'hangs@example.com' ? new Promise<void>(() => {}) : Promise.resolve()
    await enqueue('hangs@example.com')
    for (let n = 0; n < 50; n++) await enqueue(`u${n}@example.com`)
    const runningDispatcher = newDispatcher()
    const pendingDrain = runningDispatcher.drain()
    await mailer.until(() => mailer.accepted.length === 50 && mailer.attempts === 51)
    timers.advance(DELIVERY_DEADLINE)
    assert.equal(await pendingDrain, 50)
    const row = await lastMail('hangs@example.com')
    assert.equal(row.state, 'queued')
    assert.match(row.lastError!, /30 seconds/)
  })

  test('requesting a link does not wait for the mail server', async t => {
    const services = await openServices(engine, t)
    const hangingMailer = createTestMailer()
    hangingMailer.onDeliver = () => new Promise<void>(() => {})
    const runningDispatcher = createDispatcher({ ...services, mailer: hangingMailer, write: writeMail })
    runningDispatcher.start()
    await services.magicLinks.send({ email: email('a@example.com'), appId: 'console' }, services.caller())
    await hangingMailer.until(() => hangingMailer.attempts === 1)
    await services.magicLinks.send({ email: email('b@example.com'), appId: 'console' }, services.caller())
    assert.equal(hangingMailer.accepted.length, 0)
    await runningDispatcher.stop(600)
  })

  test('at most eight deliveries run concurrently', async t => {
    const { mailer, enqueue, newDispatcher } = await openOutbox(engine, t)
    let activeCount = 0
    let maxActive = 0
    mailer.onDeliver = async () => {
      maxActive = Math.max(maxActive, ++activeCount)
      await new Promise(setImmediate)
      activeCount--
    }
    for (let n = 0; n < 40; n++) await enqueue(`u${n}@example.com`)
    assert.equal(await newDispatcher().drain(), 40)
    assert.ok(maxActive <= 8, `${maxActive}`)
  })

  test('a mail sealed under a missing secret fails, and others are sent', async t => {
    const { storage, clock, mailer, enqueue, newDispatcher, lastMail } = await openOutbox(engine, t)
    const outboxWithLostSecret = createOutbox({ secrets: createSecrets([Buffer.alloc(32, 9)]) })
    const message = {
      id: newId(clock.now()),
      recipient: email('lost@example.com'),
      userId: null,
      now: clock.now(),
    }
    await storage.transaction(tx =>
      outboxWithLostSecret.enqueue(tx, { ...message, content: { kind: 'test' } }),
    )
    await enqueue('fine@example.com')
    assert.equal(await newDispatcher().drain(), 1)
    assert.deepEqual(
      mailer.accepted.map(mail => mail.to),
      ['fine@example.com'],
    )
    const row = await lastMail('lost@example.com')
    assert.equal(row.state, 'failed')
    assert.match(row.lastError!, /KEYWAY_SECRET/)
  })

  test('after a crash between sending and settling the mail is sent again under the same Message-ID', async t => {
    const { storage, mailer, enqueue, newDispatcher, timers } = await openOutbox(engine, t)
    await enqueue('a@example.com')
    const unsettlingStorage = withOutbox(storage, { settle: () => new Promise<never>(() => {}) })
    void newDispatcher({ storage: unsettlingStorage }).drain()
    await mailer.until(() => mailer.accepted.length === 1)
    const successor = newDispatcher()
    assert.equal(await successor.drain(), 0, 'the lease still holds')
    timers.advance(LEASE + 1)
    assert.equal(await successor.drain(), 1)
    const [first, second] = mailer.accepted
    assert.deepEqual(first, second)
  })

  test('an unreachable store is retried, and no mail is sent twice', async t => {
    const { storage, mailer, enqueue, newDispatcher, timers, lastMail } = await openOutbox(engine, t)
    let remainingOutages = 2
    const failingAtFirst =
      <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
      async (...args: Args) => {
        if (remainingOutages-- > 0) throw new Error('connection lost')
        return call(...args)
      }
    const { outbox } = storage.store
    const failingStorage = withOutbox(storage, {
      settle: failingAtFirst(outbox.settle.bind(outbox)),
    })
    await enqueue('a@example.com')
    const pendingDrain = newDispatcher({ storage: failingStorage }).drain()
    while (remainingOutages > -1) {
      await new Promise(setImmediate)
      if (timers.pending().some(due => due <= SECOND)) timers.advance(SECOND)
    }
    assert.equal(await pendingDrain, 1)
    assert.equal(mailer.accepted.length, 1)
    assert.equal((await lastMail('a@example.com')).state, 'sent')
  })

  test('a store that is unreachable at the start is retried until it answers', async t => {
    const { storage, mailer, enqueue, newDispatcher, timers } = await openOutbox(engine, t)
    await enqueue('a@example.com')
    const { outbox } = storage.store
    let isUnreachable = true
    const failingStorage = withOutbox(storage, {
      lease: async (...args) => {
        if (isUnreachable) throw new Error('connection lost')
        return outbox.lease(...args)
      },
    })
    const runningDispatcher = newDispatcher({ storage: failingStorage })
    runningDispatcher.start()
    while (timers.pending().length === 0) await new Promise(setImmediate)
    assert.deepEqual(timers.pending(), [SECOND])
    isUnreachable = false
    timers.advance(SECOND)
    await mailer.until(() => mailer.accepted.length === 1)
    await runningDispatcher.stop(1000)
  })

  test('stopping waits for deliveries in progress and leaves the rest queued', async t => {
    const { mailer, enqueue, newDispatcher, storage, clock } = await openOutbox(engine, t)
    const releases: (() => void)[] = []
    mailer.onDeliver = () => new Promise<void>(resolve => releases.push(resolve))
    for (let n = 0; n < 20; n++) await enqueue(`u${n}@example.com`)
    const runningDispatcher = newDispatcher()
    runningDispatcher.start()
    await mailer.until(() => mailer.attempts === 8)
    const stopping = runningDispatcher.stop(5000)
    await new Promise(setImmediate)
    for (const release of releases) release()
    await stopping
    assert.equal(mailer.accepted.length, 8)
    assert.equal((await storage.store.outbox.depth(clock.now())).queued, 12)
  })

  test('stopping does not wait for a server that hangs, and puts that mail back into the queue', async t => {
    const { mailer, enqueue, newDispatcher, lastMail } = await openOutbox(engine, t)
    mailer.onDeliver = () => new Promise<void>(() => {})
    await enqueue('a@example.com')
    const runningDispatcher = newDispatcher()
    runningDispatcher.start()
    await mailer.until(() => mailer.attempts === 1)
    await runningDispatcher.stop(600)
    await until('the lease is released', async () => (await lastMail('a@example.com')).leasedUntil === null)
    assert.equal((await lastMail('a@example.com')).state, 'queued')
  })

  test('a mail that was retried for days is sent after a stop that broke off its last attempt', async t => {
    const { mailer, enqueue, newDispatcher, lastMail, clock } = await openOutbox(engine, t)
    await enqueue('a@example.com')
    clock.advance(GIVE_UP_AFTER)
    mailer.onDeliver = () => new Promise<void>(() => {})
    const stoppedDispatcher = newDispatcher()
    stoppedDispatcher.start()
    await mailer.until(() => mailer.attempts === 1)
    await stoppedDispatcher.stop(600)
    await until('the lease is released', async () => (await lastMail('a@example.com')).leasedUntil === null)
    assert.equal((await lastMail('a@example.com')).state, 'queued')
    clock.advance(MAX_BACKOFF)
    mailer.onDeliver = async () => {}
    await newDispatcher().drain()
    assert.equal((await lastMail('a@example.com')).state, 'sent')
  })

  test('two nodes send 200 mails exactly once', async t => {
    const { storage, mailer, enqueue, newDispatcher, reopen } = await openOutbox(engine, t)
    const otherStorage = engine === 'postgres' ? await reopen() : storage
    for (let n = 0; n < 200; n++) await enqueue(`u${n}@example.com`)
    const sentByNode = await Promise.all([
      newDispatcher().drain(),
      newDispatcher({ storage: otherStorage }).drain(),
    ])
    assert.equal(sentByNode[0] + sentByNode[1], 200)
    assert.equal(new Set(mailer.accepted.map(mail => mail.messageId)).size, 200)
    assert.equal(mailer.accepted.length, 200)
  })

  test('log lines contain the message id and a masked address, never link, code or full address', async t => {
    const { mailer, enqueue, newDispatcher, timers, signIn } = await openOutbox(engine, t)
    const lines: string[] = []
    const line = (fields: object, message: string) => void lines.push(JSON.stringify({ ...fields, message }))
    const log = { debug: line, info: line, warn: line, error: line }
    const runningDispatcher = newDispatcher({ log })
    const failures = [new Error('451 <ada@example.com> SECRET'), new MailRejected('550 <ada@example.com>')]
    mailer.onDeliver = async mail => {
      const failure = failures.shift()
      if (failure) throw new Error(`${failure.message} ${mail.link}`)
    }
    const id = await enqueue('ada@example.com', signIn())
    for (let n = 0; n < 3; n++, timers.advance(MINUTE)) await runningDispatcher.drain()
    assert.equal(mailer.accepted.length, 1)
    const output = lines.join('\n')
    assert.ok(output.includes(id))
    assert.match(output, /a\*\*\*@example\.com/)
    assert.doesNotMatch(output, /ada@|SECRETTOKEN|12345678/)
  })

  test('mails over SMTP are accepted, deferred and refused correctly', async t => {
    const { enqueue, newDispatcher, timers, lastMail } = await openOutbox(engine, t)
    const server = await startSmtpServer(t)
    server.behave((recipient, attempt) => {
      if (recipient.startsWith('later')) return attempt < 3 ? 451 : 'accept'
      if (recipient.startsWith('never')) return 550
      if (recipient.startsWith('lost')) return attempt === 1 ? 'die-after-data' : 'accept'
      return 'accept'
    })
    for (const name of ['later', 'never', 'lost', 'fine']) await enqueue(`${name}@example.com`)
    const runningDispatcher = newDispatcher({ mailer: smtpMailer(t, server.port) })
    for (let n = 0; n < 3; n++, timers.advance(10 * SECOND)) await runningDispatcher.drain()
    const states = await Promise.all(
      ['later', 'never', 'lost', 'fine'].map(n => lastMail(`${n}@example.com`)),
    )
    assert.deepEqual(
      states.map(row => row.state),
      ['sent', 'failed', 'sent', 'sent'],
    )
    const count = (address: string) => server.recipients.filter(one => one === address).length
    assert.equal(count('never@example.com'), 1)
    const repeatedMails = server.mails.filter(mail => mail.recipients[0] === 'lost@example.com')
    assert.equal(repeatedMails.length, 2)
    assert.deepEqual(repeatedMails[0]!.headers.get('message-id'), repeatedMails[1]!.headers.get('message-id'))
    assert.match(repeatedMails[0]!.headers.get('message-id')![0]!, /^<[0-9a-f-]{36}@keyway\.test>$/)
  })
})

/** The storage with some outbox operations replaced, to inject failures. */
function withOutbox(storage: Storage, broken: Partial<Storage['store']['outbox']>): Storage {
  const outbox = new Proxy(storage.store.outbox, {
    get: (target, name) => {
      const replacement = broken[name as keyof typeof broken]
      if (replacement) return replacement
      const value = target[name as keyof typeof target]
      return typeof value === 'function' ? value.bind(target as never) : value
    },
  })
  return {
    store: { ...storage.store, outbox },
    events: storage.events,
    transaction: storage.transaction.bind(storage),
    runExclusive: storage.runExclusive,
    readClock: storage.readClock.bind(storage),
    close: async () => {},
  }
}
