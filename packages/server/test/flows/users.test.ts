import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { MINUTE } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { createInboxMailer } from '../../src/mail/inbox.ts'
import { createBackupStore } from '../../src/storage/backup.ts'
import { forEachEngine } from '../support/engines.ts'
import {
  address,
  caller,
  openServices,
  race,
  refusedWith,
  type Services,
  tablesWith,
} from '../support/services.ts'

const page = { limit: 50, after: null }
const UNKNOWN_ID = '01900000-0000-7000-8000-000000000000'
const NEW_KEY = { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }

async function eventsOf({ store }: Services, userId: string): Promise<string[]> {
  return (await store.securityEvents.list(userId, page)).rows.map(({ type }) => type)
}

async function endedSubjects({ store }: Services) {
  return (await store.endings.since(0, null, 100)).map(({ kind, subjectId }) => `${kind} ${subjectId}`).sort()
}

const ERASED_ADDRESS = 'gone@example.com'

/** Creates an account whose address is in every table that can contain it: links, mails, counters, the inbox. */
async function withTraces(services: Services) {
  const { store, clock } = services
  const usedLink = await services.sendTo(ERASED_ADDRESS)
  const proof = { token: usedLink.token, email: address(ERASED_ADDRESS) }
  const { user } = await services.magicLinks.verify(proof, 'api', caller())
  for (const message of await store.outbox.lease(clock.now(), clock.now() + MINUTE, 100))
    await store.outbox.settle(message.id, message.leasedUntil!, {
      state: 'sent',
      at: clock.now(),
      error: null,
    })
  await services.magicLinks.send(
    { email: address(ERASED_ADDRESS), appId: 'console', isReturning: true },
    caller(),
  )
  const inbox = createInboxMailer({ ...services, from: { name: 'Keyway', address: 'no-reply@example.com' } })
  const mail = { subject: 'Hi', text: 't', html: 'h', template: 'login', link: null, code: null }
  for (const to of [ERASED_ADDRESS, 'stays@example.com'])
    await inbox.deliver(
      { ...mail, messageId: newId(clock.now()), to: address(to) },
      AbortSignal.timeout(5000),
    )
  const { token } = await services.sendTo('stays@example.com')
  return { user, used: usedLink.token, proofOfStranger: { token, email: address('stays@example.com') } }
}

/** The types of the next events, up to the first of `type`. */
function eventsUntil({ storage }: Services, type: string): Promise<string[]> {
  return new Promise(resolve => {
    const types: string[] = []
    const unsubscribe = storage.events.subscribe(event => {
      types.push(event.type)
      if (event.type !== type) return
      unsubscribe()
      resolve(types)
    })
  })
}

forEachEngine(engine => {
  test('suspending ends sessions and links, and keys are refused as suspended', async t => {
    const services = await openServices(engine, t)
    const { user, tokens, session } = await services.signIn('a@example.com')
    const { key } = await services.apiKeys.create(user.id, NEW_KEY, caller())
    const mailedLink = await services.sendTo('a@example.com')
    const pendingEvents = eventsUntil(services, 'session.ended')
    services.clock.advance(1000)

    assert.equal((await services.users.suspend(user.id)).status, 'suspended')
    assert.ok((await pendingEvents).includes('user.changed'))
    assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'invalid_token')
    assert.equal(
      (await services.magicLinks.inspect(mailedLink.token, address('a@example.com'))).state,
      'used',
    )
    const exchange = services.agentTokens.exchange(key, undefined, caller())
    assert.equal(await refusedWith(exchange), 'account_suspended')
    assert.deepEqual(await endedSubjects(services), [`session ${session.id}`, `user ${user.id}`])
    assert.equal((await eventsOf(services, user.id))[0], 'account_suspended')
  })

  test('a link sent before a suspension is refused as suspended', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    const { token } = await services.sendTo('a@example.com')
    await services.users.suspend(user.id)
    const proof = { token, email: address('a@example.com') }
    assert.equal(await refusedWith(services.magicLinks.verify(proof, 'api', caller())), 'account_suspended')
  })

  for (const verb of ['suspend', 'delete'] as const) {
    test(`${verb} concurrently with a sign-in leaves no session`, async t => {
      const services = await openServices(engine, t)
      for (let round = 0; round < 8; round++) {
        const { user } = await services.signIn(`a${round}@example.com`)
        const email = address(`a${round}@example.com`)
        const mailedLink = await services.sendTo(email)
        const proof =
          round % 2
            ? { token: mailedLink.token, email }
            : { loginId: mailedLink.loginId, code: mailedLink.code, email }
        const { refused } = await race<unknown>(3, index =>
          index === 1 ? services.users[verb](user.id) : services.magicLinks.verify(proof, 'api', caller()),
        )
        const allowedCodes = ['account_suspended', 'magic_link_used']
        assert.ok(
          refused.every(code => allowedCodes.includes(code)),
          refused.join(),
        )
        assert.deepEqual((await services.sessions.list(user.id, page)).rows, [])
      }
    })
  }

  test('activating makes keys work again, but not sessions', async t => {
    const services = await openServices(engine, t)
    const { user, tokens } = await services.signIn('a@example.com')
    const { key } = await services.apiKeys.create(user.id, NEW_KEY, caller())
    await services.users.suspend(user.id)
    assert.equal((await services.users.activate(user.id)).status, 'active')
    assert.equal(await refusedWith(services.agentTokens.exchange(key, undefined, caller())), 'none')
    assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'invalid_token')
    assert.equal(await refusedWith(services.signIn('a@example.com')), 'none')
  })

  test('suspending, activating and deleting are idempotent', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    for (const verb of ['suspend', 'activate', 'delete'] as const) {
      const changedUser = await services.users[verb](user.id)
      services.clock.advance(1000)
      assert.deepEqual(await services.users[verb](user.id), changedUser)
    }
    const events = await eventsOf(services, user.id)
    for (const type of ['account_suspended', 'account_activated', 'account_deleted']) {
      assert.equal(events.filter(seen => seen === type).length, 1, type)
    }
  })

  test('deleting ends sessions and keys, erases name and address, and keeps the ledger', async t => {
    const services = await openServices(engine, t)
    const { user, tokens, session } = await services.signIn('gone@example.com')
    await services.users.rename(user.id, 'Ada')
    const { key, apiKey } = await services.apiKeys.create(user.id, NEW_KEY, caller())
    const mailedLink = await services.sendTo('gone@example.com')
    const pendingEvents = eventsUntil(services, 'user.changed')

    const deletedUser = await services.users.delete(user.id)
    assert.deepEqual(
      { status: deletedUser.status, name: deletedUser.name, email: deletedUser.email },
      { status: 'deleted', name: null, email: null },
    )
    const types = await pendingEvents
    assert.ok(types.includes('session.ended') && types.includes('api_key.changed'))
    assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'invalid_token')
    assert.equal(
      await refusedWith(services.agentTokens.exchange(key, undefined, caller())),
      'api_key_revoked',
    )
    const proof = { token: mailedLink.token, email: address('gone@example.com') }
    assert.equal(await refusedWith(services.magicLinks.verify(proof, 'api', caller())), 'magic_link_used')
    assert.deepEqual(
      await endedSubjects(services),
      [`api_key ${apiKey.id}`, `session ${session.id}`, `user ${user.id}`].sort(),
    )
    assert.equal((await services.accounts.ledger(user.id, page)).rows.length, 1)
    assert.equal(await refusedWith(services.users.find('gone@example.com')), 'not_found')
  })

  test('deleting erases the address everywhere, and queued mail to it is not sent', async t => {
    const services = await openServices(engine, t)
    const { user, proofOfStranger, used } = await withTraces(services)
    assert.ok((await tablesWith(services, ERASED_ADDRESS)).length >= 6)
    await services.users.delete(user.id)
    assert.deepEqual(await tablesWith(services, ERASED_ADDRESS), [])
    assert.equal((await services.mailsTo('stays@example.com', 'sign_in')).length, 1)
    const dueMails = await services.store.outbox.lease(services.clock.now(), services.clock.now() + 1, 100)
    assert.deepEqual(
      dueMails.map(({ recipient }) => recipient),
      ['stays@example.com'],
    )
    assert.equal(await refusedWith(services.magicLinks.verify(proofOfStranger, 'api', caller())), 'none')

    // The hash that replaced the address matches only that address.
    const verify = (token: string, email: string) =>
      refusedWith(services.magicLinks.verify({ token, email: address(email) }, 'api', caller()))
    assert.equal(await verify(used, ERASED_ADDRESS), 'magic_link_used')
    assert.equal(await verify(used, 'stays@example.com'), 'magic_link_invalid')
    assert.equal((await services.magicLinks.inspect(used, address(ERASED_ADDRESS))).state, 'used')
    const newAccount = await services.signIn(ERASED_ADDRESS)
    assert.ok(newAccount.isNewUser && newAccount.user.id !== user.id)
  })

  test('deleting concurrently with a sign-in leaves a complete account or none', async t => {
    const services = await openServices(engine, t)
    const otherNode = await openServices(engine, t, {
      on: { node: await services.opened.reopen(), of: services.opened },
    })
    for (let round = 0; round < 10; round++) {
      const { user } = await services.signIn(ERASED_ADDRESS)
      const links = [await services.sendTo(ERASED_ADDRESS), await services.sendTo(ERASED_ADDRESS)]
      const calls = [
        () => services.users.delete(user.id),
        () =>
          otherNode.magicLinks.verify(
            { token: links[0]!.token, email: address(ERASED_ADDRESS) },
            'api',
            caller(),
          ),
        () => otherNode.magicLinks.send({ email: address(ERASED_ADDRESS), appId: 'console' }, caller()),
        () =>
          services.magicLinks.verify(
            { token: links[1]!.token, email: address(ERASED_ADDRESS) },
            'api',
            caller(),
          ),
      ]
      const { refused } = await race<unknown>(calls.length, index => calls[index]!())
      assert.ok(
        refused.every(code => code === 'magic_link_used'),
        refused.join(),
      )
      assert.equal((await services.users.get(user.id))!.status, 'deleted')
      const remainingUser = await services.store.users.findByEmail(address(ERASED_ADDRESS))
      if (remainingUser) await services.users.delete(remainingUser.id)
    }
  })

  test('a restore with the journal brings back neither an erased address nor the reasons of acts on the account', async t => {
    const services = await openServices(engine, t)
    const { user } = await withTraces(services)
    const reason = 'Grace asked for it by telephone.'
    await services.users.suspend(user.id, { ...BY_COMMAND_LINE, reason })
    assert.deepEqual(await tablesWith(services, reason), ['audit_reasons'])
    const at = services.clock.now()
    const deletion = { type: 'user', at, id: user.id, status: 'deleted' } as const
    await createBackupStore(services.opened.storage.engine).write(async restored => {
      await restored.apply(deletion)
    })
    // The local inbox is not part of backups.
    assert.deepEqual(await tablesWith(services, ERASED_ADDRESS), ['inbox'])
    assert.deepEqual(await tablesWith(services, reason), [])
  })

  test('a deleted account cannot be suspended, activated, renamed or given a role', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    await services.users.delete(user.id)
    const { users } = services
    const calls = [
      users.suspend(user.id),
      users.activate(user.id),
      users.rename(user.id, 'x'),
      users.setRole(user.id, 'admin'),
    ]
    assert.deepEqual(
      await Promise.all(calls.map(refusedWith)),
      calls.map(() => 'not_found'),
    )
    assert.equal((await users.get(user.id))?.status, 'deleted')
  })

  test('operations on an unknown user id are refused as not found', async t => {
    const { users } = await openServices(engine, t)
    const calls = [
      users.find(UNKNOWN_ID),
      users.find('nobody@example.com'),
      users.find('neither'),
      users.rename(UNKNOWN_ID, 'x'),
      users.setRole(UNKNOWN_ID, 'admin'),
      users.suspend(UNKNOWN_ID),
      users.activate(UNKNOWN_ID),
      users.delete(UNKNOWN_ID),
    ]
    assert.deepEqual(
      await Promise.all(calls.map(refusedWith)),
      calls.map(() => 'not_found'),
    )
    assert.equal(await users.get(UNKNOWN_ID), null)
  })

  test('an account is found by id or by any spelling of its address', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    for (const who of [user.id, user.id.toUpperCase(), 'a@example.com', ' A@Example.COM ']) {
      assert.equal((await services.users.find(who)).id, user.id)
    }
  })

  test('a name can be set and removed, and a role can be set', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    assert.equal((await services.users.rename(user.id, 'Ada Łovelace')).name, 'Ada Łovelace')
    assert.equal((await services.users.rename(user.id, null)).name, null)
    assert.equal((await services.users.setRole(user.id, 'admin')).role, 'admin')
    assert.equal((await services.users.get(user.id))?.role, 'admin')
  })
})
