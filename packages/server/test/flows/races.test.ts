import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { HOUR } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { CODE_WINDOW, MAX_CODE_TRIES } from '../../src/magic-links/code-limits.ts'
import { MAGIC_LINK_LIFETIME } from '../../src/magic-links/magic-link.ts'
import { mailboxHashOf } from '../../src/magic-links/typed-code.ts'
import type { DatabaseStorage } from '../../src/storage/database.ts'
import type { Storage } from '../../src/store.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, refusedWith } from '../support/services.ts'

const ANN = address('ann@example.com')
const NEW_KEY = { name: 'a key', scopes: null, appId: 'console', allowedNetworks: [], expiresAt: null }

/**
 * Two nodes on one database. `hooks.meanwhile` is called once, just before the second node's next transaction begins,
 * so after what the operation reads first; `hooks.transactions` counts the second node's transactions.
 */
async function openPair(engine: EngineName, t: TestContext) {
  const services = await openServices(engine, t)
  const { storage } = services.opened
  const hooks = { meanwhile: null as (() => Promise<unknown>) | null, transactions: 0 }
  const transaction: Storage['transaction'] = async (work, readBack) => {
    hooks.transactions++
    const { meanwhile } = hooks
    hooks.meanwhile = null
    await meanwhile?.()
    return storage.transaction(work, readBack)
  }
  const node = { ...storage, transaction } as DatabaseStorage
  const otherNode = await openServices(engine, t, { on: { node, of: services.opened } })
  return { services, otherNode, hooks }
}

forEachEngine(engine => {
  test('a sign-in observes what happened after its first read: suspension, use and expiry of its link', async t => {
    const { services, otherNode, hooks } = await openPair(engine, t)
    const { user } = await services.signIn(ANN)
    const verify = async (meanwhile: (link: { token: string; loginId: string }) => Promise<unknown>) => {
      const link = await services.sendTo(ANN)
      hooks.meanwhile = () => meanwhile(link)
      return refusedWith(otherNode.magicLinks.verify({ token: link.token, email: ANN }, 'api', caller()))
    }
    const refusalAfterUse = await verify(({ loginId }) =>
      services.opened.storage.transaction(tx => tx.magicLinks.consume(loginId, services.clock.now())),
    )
    assert.equal(refusalAfterUse, 'magic_link_used')
    const refusalAfterExpiry = await verify(async () => services.clock.advance(MAGIC_LINK_LIFETIME))
    assert.equal(refusalAfterExpiry, 'magic_link_expired')
    const countLiveSessions = async () =>
      (await services.sessions.list(user.id, { limit: 50, after: null })).rows.length
    const liveCountBefore = await countLiveSessions()
    assert.equal(await verify(() => services.users.suspend(user.id)), 'account_suspended')
    await services.users.activate(user.id)
    assert.equal(
      await countLiveSessions(),
      0,
      `${liveCountBefore} ended with the suspension, and none was added`,
    )
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
    const otherNode = await openServices(engine, t, { on: { node, of: services.opened } })
    const pendingVerification = otherNode.magicLinks.verify({ token, email: ANN }, 'api', caller())
    assert.equal(await refusedWith(pendingVerification), 'magic_link_invalid')
  })

  test('an account that another sign-in made meanwhile is signed in to, and is not new', async t => {
    const { services, otherNode, hooks } = await openPair(engine, t)
    const [first, second] = [await services.sendTo(ANN), await services.sendTo('bob@example.com')]
    const newAccount = await otherNode.magicLinks.verify(
      { token: second.token, email: address('bob@example.com') },
      'api',
      caller(),
    )
    assert.equal(newAccount.isNewUser, true)
    hooks.meanwhile = () =>
      services.opened.storage.store.users.insert({
        ...newAccount.user,
        id: newId(services.clock.now()),
        email: ANN,
      })
    const secondSignIn = await otherNode.magicLinks.verify(
      { token: first.token, email: ANN },
      'api',
      caller(),
    )
    assert.equal(secondSignIn.isNewUser, false)
    assert.equal((await services.store.users.findByEmail(ANN))?.id, secondSignIn.user.id)
  })

  test('wrong codes of a link are cleared for the browser that requested it, and for no other', async t => {
    const { services } = await openPair(engine, t)
    const countWrongCodes = async () =>
      (
        await services.store.wrongCodes.findCounted(
          mailboxHashOf(services.secrets, ANN),
          services.clock.now() - CODE_WINDOW,
        )
      ).length
    const mailLinkAndTypeWrongCode = async () => {
      const link = await services.sendTo(ANN)
      const wrongProof = {
        loginId: link.loginId,
        code: otherCode(link.code),
      }
      const verification = services.magicLinks.verify({ ...wrongProof, email: ANN }, 'api', caller())
      assert.equal(await refusedWith(verification), 'magic_link_invalid')
      return link
    }
    const verify = (proof: object) =>
      services.magicLinks.verify(
        { email: ANN, ...proof } as { token: string; email: typeof ANN },
        'api',
        caller(),
      )
    const { token } = await mailLinkAndTypeWrongCode()
    await verify({ token })
    assert.equal(await countWrongCodes(), 1, 'having the token is no proof')
    const linkOfOtherBrowser = await mailLinkAndTypeWrongCode()
    await verify({ token: linkOfOtherBrowser.token, requestedLoginIds: [newId(services.clock.now())] })
    assert.equal(await countWrongCodes(), 2, 'nor is having asked for another')
    const linkOfThisBrowser = await mailLinkAndTypeWrongCode()
    await verify({
      token: linkOfThisBrowser.token,
      requestedLoginIds: [newId(services.clock.now()), linkOfThisBrowser.loginId],
    })
    assert.equal(await countWrongCodes(), 2)
    const linkWithTypedCode = await mailLinkAndTypeWrongCode()
    await verify({ loginId: linkWithTypedCode.loginId, code: linkWithTypedCode.code })
    assert.equal(await countWrongCodes(), 2)
  })

  test('a refusal opens no transaction', async t => {
    const { services, hooks } = await openPair(engine, t)
    const tightLimits = { maxActiveKeys: 1, limits: [{ window: 'minute' as const, limit: 1 }] }
    const { user } = await services.signIn(ANN)
    const nodeCountingTransactions = await openServices(engine, t, {
      ...tightLimits,
      on: { node: { ...services.opened.storage, transaction: countingTransaction() }, of: services.opened },
    })
    const { apiKey } = await services.apiKeys.create(user.id, NEW_KEY, caller())
    await services.apiKeys.rotate(user.id, apiKey.id, 3600, caller())
    const usedLink = await services.sendTo(ANN)
    await services.magicLinks.verify({ token: usedLink.token, email: ANN }, 'api', caller())
    const linkRequest = { email: ANN, appId: 'console' }
    const { sessions, users } = services
    const { tokens: reusedTokens } = await services.signIn(address('bob@example.com'))
    const { tokens: successors } = await sessions.refresh(reusedTokens.refreshToken, null, caller())
    await sessions.refresh(successors.refreshToken, null, caller())
    const refreshAgain = (node = services) => node.sessions.refresh(reusedTokens.refreshToken, null, caller())
    assert.equal(await refusedWith(refreshAgain()), 'refresh_token_reused')
    const suspendedEmail = address('carol@example.com')
    const { user: suspendedUser } = await services.signIn(suspendedEmail)
    await users.suspend(suspendedUser.id)
    const suspendedLink = await services.sendTo(suspendedEmail)
    const guessedEmail = address('dave@example.com')
    const guessedLink = await services.sendTo(guessedEmail)
    const typeCode = (code: string, node = services) =>
      node.magicLinks.verify({ loginId: guessedLink.loginId, code, email: guessedEmail }, 'api', caller())
    for (let tries = 0; tries < MAX_CODE_TRIES; tries++)
      assert.equal(await refusedWith(typeCode(otherCode(guessedLink.code))), 'magic_link_invalid')
    hooks.transactions = 0
    const calls: [string, () => Promise<unknown>][] = [
      ['key_limit_reached', () => nodeCountingTransactions.apiKeys.create(user.id, NEW_KEY, caller())],
      ['api_key_replaced', () => nodeCountingTransactions.apiKeys.rotate(user.id, apiKey.id, 0, caller())],
      [
        'not_found',
        () => nodeCountingTransactions.apiKeys.rotate(user.id, newId(services.clock.now()), 0, caller()),
      ],
      [
        'not_found',
        () =>
          nodeCountingTransactions.apiKeys.update(
            user.id,
            newId(services.clock.now()),
            { name: null },
            'person',
          ),
      ],
      [
        'not_found',
        () => nodeCountingTransactions.sessions.end(user.id, newId(services.clock.now()), caller()),
      ],
      [
        'magic_link_used',
        () =>
          nodeCountingTransactions.magicLinks.verify({ token: usedLink.token, email: ANN }, 'api', caller()),
      ],
      ['rate_limited', () => nodeCountingTransactions.magicLinks.send(linkRequest, caller())],
      ['refresh_token_reused', () => refreshAgain(nodeCountingTransactions)],
      [
        'account_suspended',
        () =>
          nodeCountingTransactions.magicLinks.verify(
            { token: suspendedLink.token, email: suspendedEmail },
            'api',
            caller(),
          ),
      ],
      ['rate_limited', () => typeCode(guessedLink.code, nodeCountingTransactions)],
    ]
    for (const [code, call] of calls) assert.equal(await refusedWith(call()), code)
    assert.equal(hooks.transactions, 0)

    function countingTransaction(): DatabaseStorage['transaction'] {
      return (work, readBack) => {
        hooks.transactions++
        return services.opened.storage.transaction(work, readBack)
      }
    }
  })

  test('a change of a key observes what happened after its first read: the key was deleted, or its networks narrowed', async t => {
    const { services, otherNode, hooks } = await openPair(engine, t)
    const { user } = await services.signIn(ANN)
    const newKey = { ...NEW_KEY, allowedNetworks: ['192.0.2.0/24'] }
    const { apiKey } = await services.apiKeys.create(user.id, newKey, caller())
    const changeNetworks = (allowedNetworks: string[], by: 'person' | 'key') =>
      refusedWith(otherNode.apiKeys.update(user.id, apiKey.id, { allowedNetworks }, by))
    hooks.meanwhile = () =>
      services.apiKeys.update(user.id, apiKey.id, { allowedNetworks: ['192.0.2.0/25'] }, 'person')
    assert.equal(await changeNetworks(['192.0.2.0/24', '192.0.2.1/32'], 'key'), 'session_required')
    assert.deepEqual((await services.apiKeys.get(user.id, apiKey.id)).allowedNetworks, ['192.0.2.0/25'])
    hooks.meanwhile = async () => {
      services.clock.advance(1)
      const { storage } = services.opened
      await storage.transaction(tx => tx.users.erase(user.id, services.clock.now()))
      await storage.store.apiKeys.pruneOfDeletedOwners(services.clock.now() + 1, 100)
    }
    assert.equal(await changeNetworks(['192.0.2.1/32'], 'person'), 'not_found')
  })
})

function otherCode(code: string): string {
  return `${code[0] === '0' ? 1 : 0}${code.slice(1)}`
}
