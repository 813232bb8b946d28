import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { newId } from '../../src/ids.ts'
import type { DatabaseStorage } from '../../src/storage/database.ts'
import type { Store, Transaction } from '../../src/store.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, refusedWith } from '../support/services.ts'

/** Where the connection breaks around a COMMIT: before the database gets it, or before its answer arrives. */
type Lost = 'commit' | 'answer'

/**
 * A node whose connection breaks at each COMMIT once it is told to. As with a real broken connection
 * (cluster/events.test.ts), only reading back can tell what happened.
 */
function breaking(storage: DatabaseStorage) {
  let lost: Lost | null = null
  const node = {
    ...storage,
    async transaction<Outcome>(
      work: (tx: Transaction) => Promise<Outcome>,
      readBack?: (store: Store) => Promise<Outcome | undefined>,
    ): Promise<Outcome> {
      if (lost === null) return storage.transaction(work, readBack)
      const where = lost
      const undone = new Error('undone')
      await storage
        .transaction(async tx => {
          await work(tx)
          if (where === 'commit') throw undone
        })
        .catch(error => {
          if (error !== undone) throw error
        })
      const outcome = await readBack?.(storage.store)
      if (outcome === undefined)
        throw Object.assign(new Error('unknown'), { code: 'unavailable', extras: {} })
      return outcome
    },
  }
  return {
    node: node as DatabaseStorage,
    async losing<Value>(what: Lost, call: () => Promise<Value>): Promise<Value> {
      lost = what
      try {
        return await call()
      } finally {
        lost = null
      }
    },
  }
}

async function openBreaking(engine: EngineName, t: TestContext) {
  const services = await openServices(engine, t)
  const { node, losing } = breaking(services.opened.storage)
  const broken = await openServices(engine, t, { on: { node, of: services.opened } })
  return { services, broken, losing }
}

/** @returns what the call was refused with where the COMMIT was lost, and what it gave where only its answer was */
async function loseBoth<Value>(
  { losing }: { losing: ReturnType<typeof breaking>['losing'] },
  call: () => Promise<Value>,
): Promise<Value> {
  assert.equal(await refusedWith(losing('commit', call)), 'unavailable')
  return losing('answer', call)
}

const WANTED = { name: 'a key', scopes: null, appId: 'console', allowedNetworks: [], expiresAt: null }

forEachEngine(engine => {
  test('a created key is returned although the answer to its COMMIT was lost', async t => {
    const { services, broken, losing } = await openBreaking(engine, t)
    const { user } = await services.signIn('ann@example.com')
    const made = await loseBoth({ losing }, () => broken.apiKeys.create(user.id, WANTED, caller()))
    assert.equal(made.apiKey.name, 'a key')
    assert.equal((await services.apiKeys.authenticate(made.key, caller())).id, made.apiKey.id)
    const rotated = await loseBoth({ losing }, () =>
      broken.apiKeys.rotate(user.id, made.apiKey.id, 0, caller()),
    )
    assert.equal((await services.apiKeys.authenticate(rotated.key, caller())).id, rotated.apiKey.id)
    assert.equal(rotated.apiKey.name, 'a key')
    assert.equal(await refusedWith(services.apiKeys.authenticate(made.key, caller())), 'api_key_revoked')
    const { rows } = await services.apiKeys.list(user.id, null, { limit: 10, after: null })
    assert.equal(rows.length, 2, 'none of a COMMIT that was lost')
  })

  test('of two keys of one id the second is refused, also where the answer to its COMMIT was lost', async t => {
    const { services, broken, losing } = await openBreaking(engine, t)
    const { user } = await services.signIn('ann@example.com')
    const wanted = { ...WANTED, id: newId(services.clock.now()) }
    const call = () => broken.apiKeys.create(user.id, wanted, caller())
    const { apiKey } = await loseBoth({ losing }, call)
    assert.equal(apiKey.id, wanted.id)
    assert.equal(await refusedWith(losing('answer', call)), 'idempotency_conflict')
    const { apiKeys } = services.store
    let asked = 0
    const racing = {
      ...services.opened.storage,
      store: {
        ...services.opened.storage.store,
        // The other call commits after the read that precedes the transaction.
        apiKeys: {
          ...apiKeys,
          findOwned: (userId: string, id: string) =>
            asked++ === 0 ? Promise.resolve(null) : apiKeys.findOwned(userId, id),
        },
      },
    } as DatabaseStorage
    const { node, losing: losingRace } = breaking(racing)
    const second = await openServices(engine, t, { on: { node, of: services.opened } })
    const raced = losingRace('answer', () => second.apiKeys.create(user.id, wanted, caller()))
    assert.equal(await refusedWith(raced), 'idempotency_conflict')
  })

  test('a revocation is answered as done only if it was, where the answer to its COMMIT was lost', async t => {
    const { services, broken, losing } = await openBreaking(engine, t)
    const { user } = await services.signIn('ann@example.com')
    const make = () => services.apiKeys.create(user.id, WANTED, caller())
    const [owned, operated, held] = [await make(), await make(), await make()]
    const revokedAt = services.clock.now()
    const holding = async () => {
      assert.equal(await broken.apiKeys.revokeByPossession(held.key, caller()), true)
      return true as const
    }
    const calls: [typeof owned, () => Promise<{ revokedAt: number | null } | true>][] = [
      [owned, () => broken.apiKeys.revoke(user.id, owned.apiKey.id, caller())],
      [operated, () => broken.apiKeys.revokeById(operated.apiKey.id)],
      [held, holding],
    ]
    for (const [{ key }, call] of calls) {
      assert.equal(await refusedWith(losing('commit', call)), 'unavailable')
      await services.apiKeys.authenticate(key, caller())
      const answer = await losing('answer', call)
      if (answer !== true) assert.equal(answer.revokedAt, revokedAt)
      assert.equal(await refusedWith(services.apiKeys.authenticate(key, caller())), 'api_key_revoked')
    }
    // An expired key was not revoked.
    services.clock.advance(1)
    const expiring = await services.apiKeys.create(
      user.id,
      { ...WANTED, expiresAt: services.clock.now() + 1 },
      caller(),
    )
    services.clock.advance(1)
    const late = () => broken.apiKeys.revoke(user.id, expiring.apiKey.id, caller())
    assert.equal(await refusedWith(losing('commit', late)), 'unavailable')
  })

  test('a change of a key is answered as done only if it was, where the answer to its COMMIT was lost', async t => {
    const { services, broken, losing } = await openBreaking(engine, t)
    const { user } = await services.signIn('ann@example.com')
    const { apiKey } = await services.apiKeys.create(user.id, WANTED, caller())
    const call = () => broken.apiKeys.update(user.id, apiKey.id, { name: 'another' }, 'person')
    const refused = await refusedWith(losing('commit', call))
    assert.equal(refused, 'unavailable')
    assert.equal((await services.apiKeys.get(user.id, apiKey.id)).name, 'a key')
  })

  test('sign-in, refresh and sign-out are atomic, where the answer to their COMMIT was lost', async t => {
    const { services, broken, losing } = await openBreaking(engine, t)
    const email = address('ann@example.com')
    const { loginId } = await loseBoth({ losing }, () =>
      broken.magicLinks.send({ email, appId: 'console' }, caller()),
    )
    assert.equal((await services.store.magicLinks.find(loginId))?.email, email)
    const mails = await services.mailsTo(email, 'sign_in')
    assert.equal(mails.length, 1, 'no mail of a COMMIT that was lost')
    const token = new URL(mails[0]!.link).searchParams.get('token')!
    const signedIn = await loseBoth({ losing }, () =>
      broken.magicLinks.verify({ token, email }, 'api', caller()),
    )
    assert.equal(signedIn.isNewUser, true)
    assert.equal((await services.sessions.authenticate(signedIn.tokens.accessToken)).user.email, email)

    const again = await services.sendTo(email)
    const second = await losing('answer', () =>
      broken.magicLinks.verify({ token: again.token, email }, 'api', caller()),
    )
    assert.equal(second.isNewUser, false)
    const { refreshToken } = second.tokens
    const end = () => broken.sessions.end(second.user.id, second.session.id, caller())
    assert.equal(await refusedWith(losing('commit', end)), 'unavailable')
    assert.equal((await services.store.sessions.find(second.session.id))?.endedAt, null)
    await losing('answer', end)
    assert.equal((await services.store.sessions.find(second.session.id))?.endedBy, 'revoked')
    assert.equal(
      await refusedWith(services.sessions.refresh(refreshToken, null, caller())),
      'invalid_refresh_token',
    )
  })

  test('a reused refresh token is refused as reused only after its session has ended, where the answer was lost', async t => {
    const { services, broken, losing } = await openBreaking(engine, t)
    const { tokens, session } = await services.signIn('ann@example.com')
    await services.sessions.refresh(tokens.refreshToken, null, caller())
    const reuse = () => broken.sessions.refresh(tokens.refreshToken, null, caller())
    assert.equal(await refusedWith(losing('commit', reuse)), 'unavailable')
    assert.equal((await services.store.sessions.find(session.id))?.endedAt, null)
    assert.equal(await refusedWith(losing('answer', reuse)), 'refresh_token_reused')
    assert.equal((await services.store.sessions.find(session.id))?.endedBy, 'reuse')
  })

  test('a wrong code counts once and is refused as wrong, where the answer to its COMMIT was lost', async t => {
    const { services, broken, losing } = await openBreaking(engine, t)
    const email = address('ann@example.com')
    const { loginId, code } = await services.sendTo(email)
    const wrong = String((Number(code) + 1) % 1e8).padStart(8, '0')
    const attempt = () => broken.magicLinks.verify({ loginId, code: wrong, email }, 'api', caller())
    assert.equal(await refusedWith(losing('commit', attempt)), 'unavailable')
    assert.equal((await services.store.magicLinks.find(loginId))?.codeTries, 0)
    assert.equal(await refusedWith(losing('answer', attempt)), 'magic_link_invalid')
    assert.equal((await services.store.magicLinks.find(loginId))?.codeTries, 1)
  })

  test('a rotation of the signing keys is atomic, where the answer to its COMMIT was lost', async t => {
    const { services, broken, losing } = await openBreaking(engine, t)
    const before = services.signingKeys.jwks().keys.length
    assert.equal(await refusedWith(losing('commit', () => broken.signingKeys.rotate())), 'unavailable')
    await services.signingKeys.reload()
    assert.equal(services.signingKeys.jwks().keys.length, before)
    const { kid } = await losing('answer', () => broken.signingKeys.rotate())
    await services.signingKeys.reload()
    assert.deepEqual(
      services.signingKeys
        .jwks()
        .keys.map(key => key.kid)
        .at(-1),
      kid,
    )
    assert.equal(broken.signingKeys.jwks().keys.at(-1)?.kid, kid)
  })
})
