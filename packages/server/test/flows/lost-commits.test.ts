import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { createCharges } from '../../src/billing/charges.ts'
import { newId } from '../../src/ids.ts'
import type { DatabaseStorage } from '../../src/storage/database.ts'
import type { Store, Transaction } from '../../src/store.ts'
import { type EngineName, forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, refusedWith } from '../support/services.ts'

/** Where the connection breaks around a COMMIT: before the database gets it, or before its answer arrives. */
type LostPart = 'commit' | 'answer'

/**
 * A storage whose connection breaks at each COMMIT while `whileLosing` runs. As with a real broken connection
 * (cluster/events.test.ts), only reading back can tell what happened.
 */
function createBreakableStorage(storage: DatabaseStorage) {
  let lostPart: LostPart | null = null
  const node = {
    ...storage,
    async transaction<Outcome>(
      work: (tx: Transaction) => Promise<Outcome>,
      readBack?: (store: Store) => Promise<Outcome | undefined>,
    ): Promise<Outcome> {
      if (lostPart === null) return storage.transaction(work, readBack)
      const partToLose = lostPart
      const rollbackError = new Error('undone')
      await storage
        .transaction(async tx => {
          await work(tx)
          if (partToLose === 'commit') throw rollbackError
        })
        .catch(error => {
          if (error !== rollbackError) throw error
        })
      const outcome = await readBack?.(storage.store)
      if (outcome === undefined)
        throw Object.assign(new Error('unknown'), { code: 'unavailable', extras: {} })
      return outcome
    },
  }
  return {
    node: node as DatabaseStorage,
    async whileLosing<Value>(what: LostPart, call: () => Promise<Value>): Promise<Value> {
      lostPart = what
      try {
        return await call()
      } finally {
        lostPart = null
      }
    },
  }
}

async function openWithBreakableStorage(engine: EngineName, t: TestContext) {
  const services = await openServices(engine, t)
  const { node, whileLosing } = createBreakableStorage(services.opened.storage)
  const breakable = await openServices(engine, t, { on: { node, of: services.opened } })
  return { services, breakable, whileLosing }
}

/**
 * Makes a call twice: while its COMMIT is lost, so that it must fail, and while only the answer to COMMIT is lost.
 * Returns the result of the second call.
 */
async function loseCommitThenAnswer<Value>(
  { whileLosing }: { whileLosing: ReturnType<typeof createBreakableStorage>['whileLosing'] },
  call: () => Promise<Value>,
): Promise<Value> {
  assert.equal(await refusedWith(whileLosing('commit', call)), 'unavailable')
  return whileLosing('answer', call)
}

const NEW_KEY = { name: 'a key', scopes: null, appId: 'console', allowedNetworks: [], expiresAt: null }

forEachEngine(engine => {
  test('a created key is returned although the answer to its COMMIT was lost', async t => {
    const { services, breakable, whileLosing } = await openWithBreakableStorage(engine, t)
    const { user } = await services.signIn('ann@example.com')
    const createdKey = await loseCommitThenAnswer({ whileLosing }, () =>
      breakable.apiKeys.create(user.id, NEW_KEY, caller()),
    )
    assert.equal(createdKey.apiKey.name, 'a key')
    assert.equal((await services.apiKeys.authenticate(createdKey.key, caller())).id, createdKey.apiKey.id)
    const rotatedKey = await loseCommitThenAnswer({ whileLosing }, () =>
      breakable.apiKeys.rotate(user.id, createdKey.apiKey.id, 0, caller()),
    )
    assert.equal((await services.apiKeys.authenticate(rotatedKey.key, caller())).id, rotatedKey.apiKey.id)
    assert.equal(rotatedKey.apiKey.name, 'a key')
    assert.equal(
      await refusedWith(services.apiKeys.authenticate(createdKey.key, caller())),
      'api_key_revoked',
    )
    const { rows } = await services.apiKeys.list(user.id, null, { limit: 10, after: null })
    assert.equal(rows.length, 2, 'no key of a COMMIT that was lost')
  })

  test('of two keys of one id the second is refused, also where the answer to its COMMIT was lost', async t => {
    const { services, breakable, whileLosing } = await openWithBreakableStorage(engine, t)
    const { user } = await services.signIn('ann@example.com')
    const newKey = { ...NEW_KEY, id: newId(services.clock.now()) }
    const call = () => breakable.apiKeys.create(user.id, newKey, caller())
    const { apiKey } = await loseCommitThenAnswer({ whileLosing }, call)
    assert.equal(apiKey.id, newKey.id)
    assert.equal(await refusedWith(whileLosing('answer', call)), 'idempotency_conflict')
    const { apiKeys } = services.store
    let reads = 0
    const racingStorage = {
      ...services.opened.storage,
      store: {
        ...services.opened.storage.store,
        // The first read finds no key, as if the other call committed right after it.
        apiKeys: {
          ...apiKeys,
          findOwned: (userId: string, id: string) =>
            reads++ === 0 ? Promise.resolve(null) : apiKeys.findOwned(userId, id),
        },
      },
    } as DatabaseStorage
    const { node, whileLosing: whileLosingInRace } = createBreakableStorage(racingStorage)
    const racingNode = await openServices(engine, t, { on: { node, of: services.opened } })
    const racingCreation = whileLosingInRace('answer', () =>
      racingNode.apiKeys.create(user.id, newKey, caller()),
    )
    assert.equal(await refusedWith(racingCreation), 'idempotency_conflict')
  })

  test('a revocation is answered as done only if it was, where the answer to its COMMIT was lost', async t => {
    const { services, breakable, whileLosing } = await openWithBreakableStorage(engine, t)
    const { user } = await services.signIn('ann@example.com')
    const createKey = () => services.apiKeys.create(user.id, NEW_KEY, caller())
    const [revokedByOwner, revokedByOperator, revokedByHolder] = [
      await createKey(),
      await createKey(),
      await createKey(),
    ]
    const revokedAt = services.clock.now()
    const revokeByHolder = async () => {
      assert.equal(await breakable.apiKeys.revokeByPossession(revokedByHolder.key, caller()), true)
      return true as const
    }
    const calls: [typeof revokedByOwner, () => Promise<{ revokedAt: number | null } | true>][] = [
      [revokedByOwner, () => breakable.apiKeys.revoke(user.id, revokedByOwner.apiKey.id, caller())],
      [revokedByOperator, () => breakable.apiKeys.revokeById(revokedByOperator.apiKey.id)],
      [revokedByHolder, revokeByHolder],
    ]
    for (const [{ key }, call] of calls) {
      assert.equal(await refusedWith(whileLosing('commit', call)), 'unavailable')
      await services.apiKeys.authenticate(key, caller())
      const answer = await whileLosing('answer', call)
      if (answer !== true) assert.equal(answer.revokedAt, revokedAt)
      assert.equal(await refusedWith(services.apiKeys.authenticate(key, caller())), 'api_key_revoked')
    }
    // An expired key is not taken for a revoked one when the outcome is read back.
    services.clock.advance(1)
    const expiringKey = await services.apiKeys.create(
      user.id,
      { ...NEW_KEY, expiresAt: services.clock.now() + 1 },
      caller(),
    )
    services.clock.advance(1)
    const revokeExpired = () => breakable.apiKeys.revoke(user.id, expiringKey.apiKey.id, caller())
    assert.equal(await refusedWith(whileLosing('commit', revokeExpired)), 'unavailable')
  })

  test('a change of a key is answered as done only if it was, where the answer to its COMMIT was lost', async t => {
    const { services, breakable, whileLosing } = await openWithBreakableStorage(engine, t)
    const { user } = await services.signIn('ann@example.com')
    const { apiKey } = await services.apiKeys.create(user.id, NEW_KEY, caller())
    const call = () => breakable.apiKeys.update(user.id, apiKey.id, { name: 'another' }, 'person')
    const refusalCode = await refusedWith(whileLosing('commit', call))
    assert.equal(refusalCode, 'unavailable')
    assert.equal((await services.apiKeys.get(user.id, apiKey.id)).name, 'a key')
  })

  test('a charge and a credit are booked once, where the answer to their COMMIT was lost', async t => {
    const { services, breakable, whileLosing } = await openWithBreakableStorage(engine, t)
    const { user } = await services.signIn('ann@example.com')
    const balance = () => services.store.billing.balance(user.id)
    const start = await balance()
    const charges = createCharges(breakable)
    const charge = { userId: user.id, amount: 3, description: 'a call' }
    const chargeEntry = await loseCommitThenAnswer({ whileLosing }, () =>
      charges.charge({ id: 'hub' }, charge, 'one-charge-000001'),
    )
    assert.deepEqual(
      [chargeEntry.amount, chargeEntry.balanceAfter, await balance()],
      [-3, start - 3, start - 3],
    )
    const credit = { userId: user.id, amount: 10, description: 'Sorry' }
    const creditEntry = await loseCommitThenAnswer({ whileLosing }, () =>
      breakable.credits.grant(credit, 'one', BY_COMMAND_LINE),
    )
    assert.deepEqual(
      [creditEntry.amount, creditEntry.balanceAfter, await balance()],
      [10, start + 7, start + 7],
    )
  })

  test('sign-in, refresh and sign-out are atomic, where the answer to their COMMIT was lost', async t => {
    const { services, breakable, whileLosing } = await openWithBreakableStorage(engine, t)
    const email = address('ann@example.com')
    const { loginId } = await loseCommitThenAnswer({ whileLosing }, () =>
      breakable.magicLinks.send({ email, appId: 'console' }, caller()),
    )
    assert.equal((await services.store.magicLinks.find(loginId))?.email, email)
    const mails = await services.mailsTo(email, 'sign_in')
    assert.equal(mails.length, 1, 'no mail of a COMMIT that was lost')
    const token = new URL(mails[0]!.link).searchParams.get('token')!
    const firstSignIn = await loseCommitThenAnswer({ whileLosing }, () =>
      breakable.magicLinks.verify({ token, email }, 'api', caller()),
    )
    assert.equal(firstSignIn.isNewUser, true)
    assert.equal((await services.sessions.authenticate(firstSignIn.tokens.accessToken)).user.email, email)

    const secondLink = await services.sendTo(email)
    const secondSignIn = await whileLosing('answer', () =>
      breakable.magicLinks.verify({ token: secondLink.token, email }, 'api', caller()),
    )
    assert.equal(secondSignIn.isNewUser, false)
    const { refreshToken } = secondSignIn.tokens
    const end = () => breakable.sessions.end(secondSignIn.user.id, secondSignIn.session.id, caller())
    assert.equal(await refusedWith(whileLosing('commit', end)), 'unavailable')
    assert.equal((await services.store.sessions.find(secondSignIn.session.id))?.endedAt, null)
    await whileLosing('answer', end)
    assert.equal((await services.store.sessions.find(secondSignIn.session.id))?.endedBy, 'revoked')
    assert.equal(
      await refusedWith(services.sessions.refresh(refreshToken, null, caller())),
      'invalid_refresh_token',
    )
  })

  test('a reused refresh token is refused as reused only after its session has ended, where the answer was lost', async t => {
    const { services, breakable, whileLosing } = await openWithBreakableStorage(engine, t)
    const { tokens, session } = await services.signIn('ann@example.com')
    await services.sessions.refresh(tokens.refreshToken, null, caller())
    const refreshAgain = () => breakable.sessions.refresh(tokens.refreshToken, null, caller())
    assert.equal(await refusedWith(whileLosing('commit', refreshAgain)), 'unavailable')
    assert.equal((await services.store.sessions.find(session.id))?.endedAt, null)
    assert.equal(await refusedWith(whileLosing('answer', refreshAgain)), 'refresh_token_reused')
    assert.equal((await services.store.sessions.find(session.id))?.endedBy, 'reuse')
  })

  test('a wrong code counts once and is refused as wrong, where the answer to its COMMIT was lost', async t => {
    const { services, breakable, whileLosing } = await openWithBreakableStorage(engine, t)
    const email = address('ann@example.com')
    const { loginId, code } = await services.sendTo(email)
    const wrongCode = String((Number(code) + 1) % 1e8).padStart(8, '0')
    const attempt = () => breakable.magicLinks.verify({ loginId, code: wrongCode, email }, 'api', caller())
    assert.equal(await refusedWith(whileLosing('commit', attempt)), 'unavailable')
    assert.equal((await services.store.magicLinks.find(loginId))?.codeTries, 0)
    assert.equal(await refusedWith(whileLosing('answer', attempt)), 'magic_link_invalid')
    assert.equal((await services.store.magicLinks.find(loginId))?.codeTries, 1)
  })

  test('a rotation of the signing keys is atomic, where the answer to its COMMIT was lost', async t => {
    const { services, breakable, whileLosing } = await openWithBreakableStorage(engine, t)
    const keyCountBefore = services.signingKeys.jwks().keys.length
    assert.equal(
      await refusedWith(whileLosing('commit', () => breakable.signingKeys.rotate())),
      'unavailable',
    )
    await services.signingKeys.reload()
    assert.equal(services.signingKeys.jwks().keys.length, keyCountBefore)
    const { kid } = await whileLosing('answer', () => breakable.signingKeys.rotate())
    await services.signingKeys.reload()
    assert.deepEqual(
      services.signingKeys
        .jwks()
        .keys.map(key => key.kid)
        .at(-1),
      kid,
    )
    assert.equal(breakable.signingKeys.jwks().keys.at(-1)?.kid, kid)
  })
})
