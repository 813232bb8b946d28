import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { HOUR } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { CODE_WINDOW } from '../../src/magic-links/code-limits.ts'
import { MAGIC_LINK_LIFETIME } from '../../src/magic-links/magic-link.ts'
import { codeMailbox } from '../../src/magic-links/typed-code.ts'
import type { DatabaseStorage } from '../../src/storage/database.ts'
import type { Storage } from '../../src/store.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, refusedWith } from '../support/services.ts'

const ANN = address('ann@example.com')
const KEY = { name: 'a key', scopes: null, appId: 'console', allowedNetworks: [], expiresAt: null }

/**
 * Two nodes on one database. `meanwhile` is called on the first node, once, after the second has read and before its
 * transaction begins; `begun` counts the second one's transactions.
 */
async function openPair(engine: EngineName, t: TestContext) {
  const services = await openServices(engine, t)
  const { storage } = services.opened
  const hooks = { meanwhile: null as (() => Promise<unknown>) | null, begun: 0 }
  const transaction: Storage['transaction'] = async (work, readBack) => {
    hooks.begun++
    const { meanwhile } = hooks
    hooks.meanwhile = null
    await meanwhile?.()
    return storage.transaction(work, readBack)
  }
  const node = { ...storage, transaction } as DatabaseStorage
  const other = await openServices(engine, t, { on: { node, of: services.opened } })
  return { services, other, hooks }
}

forEachEngine(engine => {
  test('a sign-in observes what happened after its first read: suspension, use and expiry of its link', async t => {
    const { services, other, hooks } = await openPair(engine, t)
    const { user } = await services.signIn(ANN)
    const verify = async (meanwhile: (link: { token: string; loginId: string }) => Promise<unknown>) => {
      const link = await services.sendTo(ANN)
      hooks.meanwhile = () => meanwhile(link)
      return refusedWith(other.magicLinks.verify({ token: link.token, email: ANN }, 'api', caller()))
    }
    const used = await verify(({ loginId }) =>
      services.opened.storage.transaction(tx => tx.magicLinks.consume(loginId, services.clock.now())),
    )
    assert.equal(used, 'magic_link_used')
    const expired = await verify(async () => services.clock.advance(MAGIC_LINK_LIFETIME))
    assert.equal(expired, 'magic_link_expired')
    const live = async () => (await services.sessions.list(user.id, { limit: 50, after: null })).rows.length
    const before = await live()
    assert.equal(await verify(() => services.users.suspend(user.id)), 'account_suspended')
    await services.users.activate(user.id)
    assert.equal(await live(), 0, `${before} ended with the suspension, and none was added`)
  })

  test('a sign-in is refused as invalid when its link was deleted after it was read', async t => {
    const { services } = await openPair(engine, t)
    const { storage } = services.opened
    const { magicLinks } = storage.store
    const { token } = await services.sendTo(ANN)
    const find = async (id: string) => {
      await magicLinks.prune(services.clock.now() + HOUR, 0, 100)
      return magicLinks.find(id)
    }
    const node = { ...storage, store: { ...storage.store, magicLinks: { ...magicLinks, find } } }
    const other = await openServices(engine, t, { on: { node, of: services.opened } })
    const verifying = other.magicLinks.verify({ token, email: ANN }, 'api', caller())
    assert.equal(await refusedWith(verifying), 'magic_link_invalid')
  })

  test('an account that another sign-in made meanwhile is signed in to, and is not new', async t => {
    const { services, other, hooks } = await openPair(engine, t)
    const [first, second] = [await services.sendTo(ANN), await services.sendTo('bob@example.com')]
    const made = await other.magicLinks.verify(
      { token: second.token, email: address('bob@example.com') },
      'api',
      caller(),
    )
    assert.equal(made.isNewUser, true)
    hooks.meanwhile = () =>
      services.opened.storage.store.users.insert({
        ...made.user,
        id: newId(services.clock.now()),
        email: ANN,
      })
    const joined = await other.magicLinks.verify({ token: first.token, email: ANN }, 'api', caller())
    assert.equal(joined.isNewUser, false)
    assert.equal((await services.store.users.findByEmail(ANN))?.id, joined.user.id)
  })

  test('wrong codes of a link are cleared for the browser that requested it, and for no other', async t => {
    const { services } = await openPair(engine, t)
    const counted = async () =>
      (
        await services.store.wrongCodes.counted(
          codeMailbox(services.secrets, ANN),
          services.clock.now() - CODE_WINDOW,
        )
      ).length
    const withWrongCode = async () => {
      const link = await services.sendTo(ANN)
      const wrong = { loginId: link.loginId, code: `${link.code[0] === '0' ? 1 : 0}${link.code.slice(1)}` }
      const typing = services.magicLinks.verify({ ...wrong, email: ANN }, 'api', caller())
      assert.equal(await refusedWith(typing), 'magic_link_invalid')
      return link
    }
    const verify = (proof: object) =>
      services.magicLinks.verify(
        { email: ANN, ...proof } as { token: string; email: typeof ANN },
        'api',
        caller(),
      )
    const { token } = await withWrongCode()
    await verify({ token })
    assert.equal(await counted(), 1, 'having the token is no proof')
    const other = await withWrongCode()
    await verify({ token: other.token, askedFor: [newId(services.clock.now())] })
    assert.equal(await counted(), 2, 'nor is having asked for another')
    const mine = await withWrongCode()
    await verify({ token: mine.token, askedFor: [newId(services.clock.now()), mine.loginId] })
    assert.equal(await counted(), 2)
    const typed = await withWrongCode()
    await verify({ loginId: typed.loginId, code: typed.code })
    assert.equal(await counted(), 2)
  })

  test('a refusal opens no transaction', async t => {
    const { services, other, hooks } = await openPair(engine, t)
    const tight = { maxActiveKeys: 1, limits: [{ window: 'minute' as const, limit: 1 }] }
    const { user } = await services.signIn(ANN)
    const limited = await openServices(engine, t, {
      ...tight,
      on: { node: other.opened.storage, of: services.opened },
    })
    const counting = await openServices(engine, t, {
      ...tight,
      on: { node: { ...services.opened.storage, transaction: counted() }, of: services.opened },
    })
    assert.ok(limited)
    const { key, apiKey } = await services.apiKeys.create(user.id, KEY, caller())
    await services.apiKeys.rotate(user.id, apiKey.id, 3600, caller())
    const used = await services.sendTo(ANN)
    await services.magicLinks.verify({ token: used.token, email: ANN }, 'api', caller())
    const wanted = { email: ANN, appId: 'console' }
    hooks.begun = 0
    const calls: [string, () => Promise<unknown>][] = [
      ['key_limit_reached', () => counting.apiKeys.create(user.id, KEY, caller())],
      ['api_key_replaced', () => counting.apiKeys.rotate(user.id, apiKey.id, 0, caller())],
      ['not_found', () => counting.apiKeys.rotate(user.id, newId(services.clock.now()), 0, caller())],
      [
        'not_found',
        () => counting.apiKeys.update(user.id, newId(services.clock.now()), { name: null }, 'person'),
      ],
      ['not_found', () => counting.sessions.end(user.id, newId(services.clock.now()), caller())],
      [
        'magic_link_used',
        () => counting.magicLinks.verify({ token: used.token, email: ANN }, 'api', caller()),
      ],
      ['rate_limited', () => counting.magicLinks.send(wanted, caller())],
    ]
    for (const [code, call] of calls) assert.equal(await refusedWith(call()), code)
    assert.equal(hooks.begun, 0)
    assert.ok(key)

    function counted(): DatabaseStorage['transaction'] {
      return (work, readBack) => {
        hooks.begun++
        return services.opened.storage.transaction(work, readBack)
      }
    }
  })

  test('a change of a key observes what happened after its first read: the key is gone, or was narrowed', async t => {
    const { services, other, hooks } = await openPair(engine, t)
    const { user } = await services.signIn(ANN)
    const wide = { ...KEY, allowedNetworks: ['192.0.2.0/24'] }
    const { apiKey } = await services.apiKeys.create(user.id, wide, caller())
    const change = (allowedNetworks: string[], by: 'person' | 'key') =>
      refusedWith(other.apiKeys.update(user.id, apiKey.id, { allowedNetworks }, by))
    hooks.meanwhile = () =>
      services.apiKeys.update(user.id, apiKey.id, { allowedNetworks: ['192.0.2.0/25'] }, 'person')
    assert.equal(await change(['192.0.2.0/24', '192.0.2.1/32'], 'key'), 'session_required')
    assert.deepEqual((await services.apiKeys.get(user.id, apiKey.id)).allowedNetworks, ['192.0.2.0/25'])
    hooks.meanwhile = async () => {
      services.clock.advance(1)
      const { storage } = services.opened
      await storage.transaction(tx => tx.users.erase(user.id, services.clock.now()))
      await storage.store.apiKeys.pruneOfDeletedOwners(services.clock.now() + 1, 100)
    }
    assert.equal(await change(['192.0.2.1/32'], 'person'), 'not_found')
  })
})
