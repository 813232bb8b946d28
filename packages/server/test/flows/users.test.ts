import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, race, refusedWith, type Services } from '../support/services.ts'

const page = { limit: 50, after: null }
const UNKNOWN = '01900000-0000-7000-8000-000000000000'
const WANTED = { name: null, scopes: [], expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }

async function eventsOf({ store }: Services, userId: string): Promise<string[]> {
  return (await store.securityEvents.list(userId, page)).rows.map(({ type }) => type)
}

async function endedSubjects({ store }: Services) {
  return (await store.endings.since(0, null, 100)).map(({ kind, subjectId }) => `${kind} ${subjectId}`).sort()
}

/** The next events until one of this type, that one included. */
function heardUntil({ storage }: Services, type: string): Promise<string[]> {
  return new Promise(resolve => {
    const types: string[] = []
    const stop = storage.events.subscribe(event => {
      types.push(event.type)
      if (event.type !== type) return
      stop()
      resolve(types)
    })
  })
}

forEachEngine(engine => {
  test('suspending ends sessions and links, and the keys say so', async t => {
    const services = await openServices(engine, t)
    const { user, tokens, session } = await services.signIn('a@example.com')
    const { key } = await services.apiKeys.create(user.id, WANTED, caller())
    const sent = await services.sendTo('a@example.com')
    const heard = heardUntil(services, 'user.changed')
    services.clock.advance(1000)

    assert.equal((await services.users.suspend(user.id)).status, 'suspended')
    assert.ok((await heard).includes('session.ended'))
    assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'invalid_token')
    assert.equal((await services.magicLinks.inspect(sent.token, address('a@example.com'))).state, 'used')
    const exchange = services.agentTokens.exchange(key, undefined, caller())
    assert.equal(await refusedWith(exchange), 'account_suspended')
    assert.deepEqual(await endedSubjects(services), [`session ${session.id}`, `user ${user.id}`])
    assert.equal((await eventsOf(services, user.id))[0], 'account_suspended')
  })

  test('a link that was in the mail when the account was suspended hears of the suspension', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    const { token } = await services.sendTo('a@example.com')
    await services.users.suspend(user.id)
    const proof = { token, email: address('a@example.com') }
    assert.equal(await refusedWith(services.magicLinks.verify(proof, 'api', caller())), 'account_suspended')
  })

  for (const verb of ['suspend', 'delete'] as const) {
    test(`${verb} at the very moment of a sign-in leaves no session behind`, async t => {
      const services = await openServices(engine, t)
      for (let round = 0; round < 8; round++) {
        const { user } = await services.signIn(`a${round}@example.com`)
        const email = address(`a${round}@example.com`)
        const sent = await services.sendTo(email)
        const proof =
          round % 2 ? { token: sent.token, email } : { loginId: sent.loginId, code: sent.code, email }
        const { refused } = await race<unknown>(3, index =>
          index === 1 ? services.users[verb](user.id) : services.magicLinks.verify(proof, 'api', caller()),
        )
        const allowed = ['account_suspended', 'magic_link_used']
        assert.ok(
          refused.every(code => allowed.includes(code)),
          refused.join(),
        )
        assert.deepEqual((await services.sessions.list(user.id, page)).rows, [])
      }
    })
  }

  test('activating gives the keys back, not the sessions', async t => {
    const services = await openServices(engine, t)
    const { user, tokens } = await services.signIn('a@example.com')
    const { key } = await services.apiKeys.create(user.id, WANTED, caller())
    await services.users.suspend(user.id)
    assert.equal((await services.users.activate(user.id)).status, 'active')
    assert.equal(await refusedWith(services.agentTokens.exchange(key, undefined, caller())), 'none')
    assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'invalid_token')
    assert.equal(await refusedWith(services.signIn('a@example.com')), 'none')
  })

  test('suspending, activating or deleting twice changes nothing the second time', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    for (const verb of ['suspend', 'activate', 'delete'] as const) {
      const first = await services.users[verb](user.id)
      services.clock.advance(1000)
      assert.deepEqual(await services.users[verb](user.id), first)
    }
    const events = await eventsOf(services, user.id)
    for (const type of ['account_suspended', 'account_activated', 'account_deleted']) {
      assert.equal(events.filter(seen => seen === type).length, 1, type)
    }
  })

  test('deleting ends sessions and keys, erases name and address, and leaves the ledger', async t => {
    const services = await openServices(engine, t)
    const { user, tokens, session } = await services.signIn('gone@example.com')
    await services.users.rename(user.id, 'Ada')
    const { key, apiKey } = await services.apiKeys.create(user.id, WANTED, caller())
    const sent = await services.sendTo('gone@example.com')
    const heard = heardUntil(services, 'user.changed')

    const deleted = await services.users.delete(user.id)
    assert.deepEqual(
      { status: deleted.status, name: deleted.name, email: deleted.email },
      { status: 'deleted', name: null, email: null },
    )
    const types = await heard
    assert.ok(types.includes('session.ended') && types.includes('api_key.changed'))
    assert.equal(await refusedWith(services.sessions.authenticate(tokens.accessToken)), 'invalid_token')
    assert.equal(
      await refusedWith(services.agentTokens.exchange(key, undefined, caller())),
      'api_key_revoked',
    )
    const proof = { token: sent.token, email: address('gone@example.com') }
    assert.equal(await refusedWith(services.magicLinks.verify(proof, 'api', caller())), 'magic_link_used')
    assert.deepEqual(
      await endedSubjects(services),
      [`api_key ${apiKey.id}`, `session ${session.id}`, `user ${user.id}`].sort(),
    )
    assert.equal((await services.accounts.ledger(user.id, page)).rows.length, 1)
    assert.equal(await refusedWith(services.users.find('gone@example.com')), 'not_found')
  })

  test('a deleted account is neither suspended, activated, renamed nor given a role', async t => {
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

  test('nobody is found, changed or ended under an unknown id', async t => {
    const { users } = await openServices(engine, t)
    const calls = [
      users.find(UNKNOWN),
      users.find('nobody@example.com'),
      users.find('neither'),
      users.rename(UNKNOWN, 'x'),
      users.setRole(UNKNOWN, 'admin'),
      users.suspend(UNKNOWN),
      users.activate(UNKNOWN),
      users.delete(UNKNOWN),
    ]
    assert.deepEqual(
      await Promise.all(calls.map(refusedWith)),
      calls.map(() => 'not_found'),
    )
    assert.equal(await users.get(UNKNOWN), null)
  })

  test('an account is found by id or by any spelling of its address', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    for (const who of [user.id, user.id.toUpperCase(), 'a@example.com', ' A@Example.COM ']) {
      assert.equal((await services.users.find(who)).id, user.id)
    }
  })

  test('a name can be set and removed, and a role set', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('a@example.com')
    assert.equal((await services.users.rename(user.id, 'Ada Łovelace')).name, 'Ada Łovelace')
    assert.equal((await services.users.rename(user.id, null)).name, null)
    assert.equal((await services.users.setRole(user.id, 'admin')).role, 'admin')
    assert.equal((await services.users.get(user.id))?.role, 'admin')
  })
})
