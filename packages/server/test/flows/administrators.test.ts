import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import type { Log } from '../../src/log.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { openServices, race, refusedWith, type ServiceOverrides } from '../support/services.ts'

const ADA = 'ada@example.com'
const BOB = 'bob@example.com'

/** Starts the service again on the same database, with other settings. */
async function restart(
  engine: EngineName,
  t: TestContext,
  running: Awaited<ReturnType<typeof openServices>>,
  settings: ServiceOverrides,
) {
  const node = await running.opened.reopen()
  const services = await openServices(engine, t, { ...settings, on: { node, of: running.opened } })
  await services.listed.apply()
  return services
}

async function openWithAdministrators(engine: EngineName, t: TestContext, adminEmails: string[]) {
  const services = await openServices(engine, t, { adminEmails })
  await services.listed.apply()
  return services
}

forEachEngine(engine => {
  test('a listed address is an administrator from its next sign-in on, and no other is', async t => {
    const servicesWithoutList = await openServices(engine, t)
    const earlySignIn = await servicesWithoutList.signIn(ADA)
    assert.equal(earlySignIn.user.role, 'user')
    const services = await restart(engine, t, servicesWithoutList, { adminEmails: [ADA] })
    assert.equal((await services.users.get(earlySignIn.user.id))!.role, 'user', 'not before the sign-in')
    const { user, session } = await services.signIn('Ada@Example.com')
    assert.equal(user.role, 'admin')
    assert.equal((await services.store.sessions.findWithUser(session.id))!.user.role, 'admin')
    assert.equal((await services.signIn('ada+x@example.com')).user.role, 'user')
    assert.equal((await services.signIn(BOB)).user.role, 'user')
  })

  test('a role that is set later wins over the list until the address is removed and listed again', async t => {
    const firstStart = await openWithAdministrators(engine, t, [ADA, BOB])
    const { user } = await firstStart.signIn(ADA)
    const bob = await firstStart.signIn(BOB)
    assert.deepEqual([user.role, bob.user.role], ['admin', 'admin'])
    await firstStart.users.setRole(user.id, 'support')
    assert.equal((await firstStart.signIn(ADA)).user.role, 'support')
    const servicesWithSameList = await restart(engine, t, firstStart, { adminEmails: [ADA, BOB] })
    assert.equal((await servicesWithSameList.signIn(ADA)).user.role, 'support', 'also after a restart')
    const servicesWithoutAda = await restart(engine, t, firstStart, { adminEmails: [BOB] })
    assert.equal(
      (await servicesWithoutAda.users.get(user.id))!.role,
      'support',
      'which the list did not give',
    )
    const servicesWithAdaAgain = await restart(engine, t, firstStart, { adminEmails: [ADA, BOB] })
    assert.equal((await servicesWithAdaAgain.signIn(ADA)).user.role, 'admin')
  })

  test('a role that is set before the first sign-in of a listed address wins too', async t => {
    const firstStart = await openServices(engine, t)
    const { user } = await firstStart.signIn(ADA)
    const services = await restart(engine, t, firstStart, { adminEmails: [ADA] })
    await services.users.setRole(user.id, 'user')
    assert.equal((await services.signIn(ADA)).user.role, 'user')
  })

  test('an address that is no longer listed loses the role at the next start, unless nobody else administers', async t => {
    const lines: string[] = []
    const warn = (_: object, message: string) => lines.push(message)
    const log = { debug() {}, info() {}, warn, error() {} } as unknown as Log
    const firstStart = await openWithAdministrators(engine, t, [ADA, BOB])
    const ada = await firstStart.signIn(ADA)
    const bob = await firstStart.signIn(BOB)
    await restart(engine, t, firstStart, { adminEmails: [BOB] })
    assert.equal((await firstStart.users.get(ada.user.id))!.role, 'user')
    await restart(engine, t, firstStart, { adminEmails: [], log })
    assert.equal((await firstStart.users.get(bob.user.id))!.role, 'admin')
    assert.match(lines.join(), /no longer lists the last administrator/)
    await firstStart.users.setRole(ada.user.id, 'admin')
    await restart(engine, t, firstStart, { adminEmails: [] })
    assert.equal((await firstStart.users.get(bob.user.id))!.role, 'user')
    assert.equal(
      (await firstStart.users.get(ada.user.id))!.role,
      'admin',
      'whom the list did not make an administrator',
    )
  })

  test('the last active administrator cannot be demoted, suspended or deleted', async t => {
    const services = await openServices(engine, t)
    const ada = await services.signIn(ADA)
    const bob = await services.signIn(BOB)
    const { users } = services
    await users.setRole(ada.user.id, 'admin')
    const refusals = () =>
      Promise.all(
        [
          users.setRole(ada.user.id, 'user'),
          users.setRole(ada.user.id, 'support'),
          users.suspend(ada.user.id),
          users.delete(ada.user.id),
        ].map(refusedWith),
      )
    assert.deepEqual(await refusals(), Array(4).fill('last_administrator'))
    await users.setRole(bob.user.id, 'admin')
    await users.suspend(bob.user.id)
    assert.deepEqual(await refusals(), Array(4).fill('last_administrator'), 'a suspended one does not count')
    await users.activate(bob.user.id)
    assert.equal((await users.setRole(ada.user.id, 'user')).role, 'user')
    assert.deepEqual(await services.store.users.find(bob.user.id), { ...bob.user, role: 'admin' })
  })

  test('of two administrators who remove each other on two nodes at once, one stays', async t => {
    for (const removal of ['setRole', 'suspend', 'delete'] as const) {
      const nodeA = await openServices(engine, t)
      const node = await nodeA.opened.reopen()
      const nodeB = await openServices(engine, t, { on: { node, of: nodeA.opened } })
      const [ada, bob] = [await nodeA.signIn(ADA), await nodeA.signIn(BOB)]
      for (const { user } of [ada, bob]) await nodeA.users.setRole(user.id, 'admin')
      const removeAdministrator = ({ users }: typeof nodeA, id: string) =>
        removal === 'setRole' ? users.setRole(id, 'user') : users[removal](id, BY_COMMAND_LINE)
      const calls = [
        () => removeAdministrator(nodeA, bob.user.id),
        () => removeAdministrator(nodeB, ada.user.id),
      ]
      const { won, refused } = await race(20, index => calls[index % 2]!())
      assert.ok(won.length >= 1, removal)
      assert.ok(refused.includes('last_administrator'), removal)
      assert.ok(await nodeA.store.users.hasAdministrator(), removal)
    }
  })
})
