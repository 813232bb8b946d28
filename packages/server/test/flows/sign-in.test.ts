import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MagicLinkProof } from '../../src/magic-links/magic-link.ts'
import type { Transaction } from '../../src/store.ts'
import { forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, race, refusedWith, type Services } from '../support/services.ts'

const page = { limit: 50, after: null }

/** Reads everything that is created together with an account; null if the address has no account. */
async function accountParts({ store, accounts, mailsTo }: Services, email: string) {
  const user = await store.users.findByEmail(address(email))
  if (!user) return null
  const account = await accounts.get(user.id)
  const ledger = (await accounts.ledger(user.id, page)).rows
  const events = (await store.securityEvents.list(user.id, page)).rows
  return {
    user,
    balance: account.balance,
    plan: account.subscription.plan,
    apps: account.authorizations.map(({ appId }) => appId).sort(),
    ledger: ledger.map(({ kind, amount, balanceAfter }) => [kind, amount, balanceAfter]),
    welcomes: (await mailsTo(email, 'welcome')).length,
    events: events.map(({ type }) => type).sort(),
  }
}

const NEW_ACCOUNT = {
  balance: 2_000_000,
  plan: 'free',
  apps: ['console', 'hub'],
  ledger: [['trial_credit', 2_000_000, 2_000_000]],
  welcomes: 1,
  events: ['account_created', 'sign_in'],
}

forEachEngine(engine => {
  test('a link to an unknown address creates the whole account and signs in', async t => {
    const services = await openServices(engine, t)
    const signInResult = await services.signIn('New@Example.com')
    assert.equal(signInResult.isNewUser, true)
    assert.deepEqual(
      { ...signInResult.user, id: '' },
      { ...signInResult.user, id: '', email: 'new@example.com', name: null, role: 'user', status: 'active' },
    )
    const { user, ...has } = (await accountParts(services, 'new@example.com'))!
    assert.equal(user.id, signInResult.user.id)
    assert.deepEqual(has, NEW_ACCOUNT)
    assert.equal((await services.mailsTo('new@example.com', 'welcome'))[0]?.trialCredit, '2.00')
    assert.equal((await services.sessions.authenticate(signInResult.tokens.accessToken)).user.id, user.id)
  })

  test('signing in again grants no second credit, plan or authorisation', async t => {
    const services = await openServices(engine, t)
    const firstSignIn = await services.signIn('a@example.com')
    for (let again = 0; again < 3; again++) {
      const laterSignIn = await services.signIn('A@EXAMPLE.com')
      assert.equal(laterSignIn.isNewUser, false)
      assert.equal(laterSignIn.user.id, firstSignIn.user.id)
      assert.notEqual(laterSignIn.session.id, firstSignIn.session.id)
    }
    const { user: _, events, ...has } = (await accountParts(services, 'a@example.com'))!
    assert.deepEqual({ ...has, events: NEW_ACCOUNT.events }, NEW_ACCOUNT)
    assert.deepEqual(events, ['account_created', 'sign_in', 'sign_in', 'sign_in', 'sign_in'])
  })

  test('if any statement of an account’s creation fails, nothing of it is stored, and the link still works', async t => {
    const services = await openServices(engine, t)
    const email = address('half@example.com')
    const { token } = await services.sendTo(email)
    const originalTransaction = services.storage.transaction
    let statementCount = 0
    for (let failing = 1; ; failing++) {
      statementCount = 0
      services.storage.transaction = (work, landed) =>
        originalTransaction.call(services.storage, tx => work(failAt(tx, failing)), landed) as never
      const call = services.magicLinks.verify({ token, email }, 'api', caller())
      const hasFailed = await call.then(
        () => false,
        () => true,
      )
      services.storage.transaction = originalTransaction
      if (!hasFailed) break
      assert.equal(await accountParts(services, email), null, `failing statement ${failing}`)
      assert.equal((await services.mailsTo(email, 'welcome')).length, 0)
      assert.equal((await services.magicLinks.inspect(token, email)).state, 'live')
    }
    assert.ok(statementCount > 10, 'every statement of the transaction failed once')
    const { user: _, ...has } = (await accountParts(services, email))!
    assert.deepEqual(has, NEW_ACCOUNT)

    /** A transaction whose n-th statement fails, as with a lost connection. */
    function failAt(tx: Transaction, failing: number): Transaction {
      const countStatement = (call: () => unknown) => {
        if (++statementCount === failing) throw new Error('the connection was lost')
        return call()
      }
      return viewOf(tx, (name, port) =>
        name === 'publish'
          ? port
          : viewOf(port as object, (_, method) => countingCall(method, port, countStatement)),
      )
    }
  })

  test('signing up again after a deletion creates a new account without a second credit', async t => {
    const services = await openServices(engine, t)
    const firstSignIn = await services.signIn('back@example.com')
    await services.users.delete(firstSignIn.user.id)
    const secondSignIn = await services.signIn('back@example.com')
    assert.equal(secondSignIn.isNewUser, true)
    assert.notEqual(secondSignIn.user.id, firstSignIn.user.id)
    const { balance, ledger, apps, plan } = (await accountParts(services, 'back@example.com'))!
    assert.deepEqual(
      { balance, ledger, apps, plan },
      { balance: 0, ledger: [], apps: NEW_ACCOUNT.apps, plan: 'free' },
    )
    assert.equal(
      await refusedWith(services.sessions.authenticate(firstSignIn.tokens.accessToken)),
      'invalid_token',
    )
  })

  test('of twenty concurrent verifications of one link one signs in, and one account is created', async t => {
    const services = await openServices(engine, t)
    const email = address('race@example.com')
    const { token } = await services.sendTo(email)
    const { won, refused } = await raceVerifications(services, () => ({ token, email }))
    assert.equal(won.length, 1)
    assert.deepEqual(refused, Array(19).fill('magic_link_used'))
    const { user: _, ...has } = (await accountParts(services, email))!
    assert.deepEqual(has, NEW_ACCOUNT)
    assert.equal((await services.sessions.list(won[0]!.user.id, page)).rows.length, 1)
  })

  test('twenty links of a new address used concurrently create one complete account', async t => {
    const services = await openServices(engine, t)
    const email = address('many@example.com')
    const links: { token: string }[] = []
    for (let index = 0; index < 20; index++) links.push(await services.sendTo(email))
    const { won, refused } = await raceVerifications(services, index => ({
      token: links[index]!.token,
      email,
    }))
    assert.ok(won.length >= 1)
    assert.deepEqual(new Set(refused), new Set(['magic_link_used']))
    assert.equal(new Set(won.map(({ user }) => user.id)).size, 1)
    const { user: _, events, ...has } = (await accountParts(services, email))!
    assert.deepEqual({ ...has, events: NEW_ACCOUNT.events }, NEW_ACCOUNT)
    assert.equal(events.filter(type => type === 'account_created').length, 1)
  })

  test('a link is valid until its last millisecond', async t => {
    const services = await openServices(engine, t)
    const linkUsedInTime = await services.sendTo('early@example.com')
    const expiredLink = await services.sendTo('late@example.com')
    services.clock.advance(5 * 60_000 - 1)
    assert.equal(
      (await services.magicLinks.inspect(linkUsedInTime.token, address('early@example.com'))).state,
      'live',
    )
    assert.equal(await refusedWith(verifyToken(services, linkUsedInTime.token, 'early@example.com')), 'none')
    services.clock.advance(1)
    assert.equal(
      (await services.magicLinks.inspect(expiredLink.token, address('late@example.com'))).state,
      'expired',
    )
    assert.equal(
      await refusedWith(verifyToken(services, expiredLink.token, 'late@example.com')),
      'magic_link_expired',
    )
    assert.equal(await accountParts(services, 'late@example.com'), null)
  })

  test('a link works once; a second use is refused as used, also after its expiry', async t => {
    const services = await openServices(engine, t)
    const { token } = await services.sendTo('once@example.com')
    assert.equal(await refusedWith(verifyToken(services, token, 'once@example.com')), 'none')
    assert.equal(await refusedWith(verifyToken(services, token, 'once@example.com')), 'magic_link_used')
    services.clock.advance(10 * 60_000)
    assert.equal(await refusedWith(verifyToken(services, token, 'once@example.com')), 'magic_link_used')
    assert.equal((await services.magicLinks.inspect(token, address('once@example.com'))).state, 'used')
  })

  test('the refusal of a used, an expired and an invalid link says what to do', async t => {
    const services = await openServices(engine, t)
    const { token: usedToken } = await services.sendTo('ada@example.com')
    await verifyToken(services, usedToken, 'ada@example.com')
    const { token: expiredToken } = await services.sendTo('ada@example.com')
    services.clock.advance(300_000)
    for (const [token, message] of [
      [usedToken, 'This sign-in link was used already. Ask for a new one.'],
      [expiredToken, 'This sign-in link has expired. Ask for a new one.'],
      ['unknown', 'This sign-in link or code is not valid for this address. Ask for a new one.'],
    ] as const)
      await assert.rejects(verifyToken(services, token, 'ada@example.com'), { message })
  })

  test('a suspension that commits after the link was read, and before the account is locked, refuses the sign-in', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('held@example.com')
    const { token } = await services.sendTo('held@example.com')
    const { storage } = services.opened
    const node = {
      ...storage,
      async transaction(...args: Parameters<typeof storage.transaction>) {
        await services.users.suspend(user.id)
        return storage.transaction(...args)
      },
    } as typeof storage
    const racingServices = await openServices(engine, t, { on: { node, of: services.opened } })
    assert.equal(
      await refusedWith(verifyToken(racingServices, token, 'held@example.com')),
      'account_suspended',
    )
  })

  test('a wrong address, app or token is refused alike, and does not consume the link', async t => {
    const services = await openServices(engine, t)
    const a = await services.sendTo('a@example.com', 'my-app')
    const b = await services.sendTo('b@example.com')
    const refusedProofs = [
      verifyToken(services, a.token, 'b@example.com'),
      verifyToken(services, b.token, 'a@example.com'),
      verifyToken(services, a.token, 'a@example.com', 'console'),
      verifyToken(services, `${a.token}x`, 'a@example.com'),
      verifyToken(services, 'A'.repeat(43), 'stranger@example.com'),
      verifyToken(services, '', 'a@example.com'),
    ]
    assert.deepEqual(
      await Promise.all(refusedProofs.map(refusedWith)),
      refusedProofs.map(() => 'magic_link_invalid'),
    )
    assert.equal((await services.magicLinks.inspect(a.token, address('b@example.com'))).state, 'invalid')
    const signInResult = await verifyToken(services, a.token, 'a@example.com', 'my-app')
    assert.equal(signInResult.session.appId, 'my-app')
    const otherSignIn = await verifyToken(services, b.token, 'b@example.com')
    assert.equal(otherSignIn.session.appId, 'console')
    assert.equal(otherSignIn.user.email, 'b@example.com')
  })

  test('several links may be live, and using one invalidates only the others of the same address', async t => {
    const services = await openServices(engine, t)
    const links = [await services.sendTo('a@example.com'), await services.sendTo('a@example.com')]
    const laterLink = await services.sendTo('a@example.com')
    const linkOfOtherAddress = await services.sendTo('b@example.com')
    assert.equal(await refusedWith(verifyToken(services, links[1]!.token, 'a@example.com')), 'none')
    for (const { token } of [links[0]!, laterLink]) {
      assert.equal(await refusedWith(verifyToken(services, token, 'a@example.com')), 'magic_link_used')
    }
    assert.equal(await refusedWith(verifyToken(services, linkOfOtherAddress.token, 'b@example.com')), 'none')
  })

  test('the code signs in under its login id and under no other', async t => {
    const services = await openServices(engine, t)
    const a = await services.sendTo('a@example.com')
    const otherLink = await services.sendTo('a@example.com')
    assert.match(a.code, /^\d{8}$/)
    assert.equal(
      await refusedWith(verifyCode(services, { ...a, loginId: otherLink.loginId }, 'a@example.com')),
      'magic_link_invalid',
    )
    for (const loginId of ['', 'no-uuid', '00000000-0000-7000-8000-000000000000']) {
      assert.equal(
        await refusedWith(verifyCode(services, { ...a, loginId }, 'a@example.com')),
        'magic_link_invalid',
      )
    }
    assert.equal(await refusedWith(verifyCode(services, a, 'b@example.com')), 'magic_link_invalid')
    const signInResult = await verifyCode(
      services,
      { ...a, loginId: a.loginId.toUpperCase() },
      'a@example.com',
    )
    assert.equal(signInResult.user.email, 'a@example.com')
    assert.equal(await refusedWith(verifyToken(services, a.token, 'a@example.com')), 'magic_link_used')
  })

  test('a code is refused under another app, without using up one of its attempts', async t => {
    const services = await openServices(engine, t)
    const mailedLink = await services.sendTo('a@example.com', 'other')
    const { loginId, code } = mailedLink
    const proof = { loginId, code, email: address('a@example.com') }
    for (let attempt = 0; attempt < 6; attempt++) {
      assert.equal(
        await refusedWith(services.magicLinks.verify({ ...proof, appId: 'console' }, 'api', caller())),
        'magic_link_invalid',
      )
    }
    assert.equal(
      await refusedWith(services.magicLinks.verify({ ...proof, appId: 'other' }, 'api', caller())),
      'none',
    )
  })

  test('the fifth try of a code can succeed', async t => {
    const services = await openServices(engine, t)
    const mailedLink = await services.sendTo('a@example.com')
    for (let attempt = 0; attempt < 4; attempt++) await typeWrongCode(services, mailedLink, 'a@example.com')
    assert.equal(await refusedWith(verifyCode(services, mailedLink, 'a@example.com')), 'none')
  })

  test('after five wrong codes only the link works', async t => {
    const services = await openServices(engine, t)
    const mailedLink = await services.sendTo('a@example.com')
    for (let attempt = 0; attempt < 5; attempt++) await typeWrongCode(services, mailedLink, 'a@example.com')
    assert.equal(await refusedWith(verifyCode(services, mailedLink, 'a@example.com')), 'rate_limited')
    assert.equal(await refusedWith(verifyToken(services, mailedLink.token, 'a@example.com')), 'none')
  })

  test('twenty concurrent wrong codes use exactly five tries', async t => {
    const services = await openServices(engine, t)
    const mailedLink = await services.sendTo('a@example.com')
    const { refused } = await raceVerifications(services, () => ({
      loginId: mailedLink.loginId,
      code: otherCode(mailedLink.code),
      email: address('a@example.com'),
    }))
    assert.deepEqual(refused.toSorted(), [
      ...Array(5).fill('magic_link_invalid'),
      ...Array(15).fill('rate_limited'),
    ])
    assert.equal((await services.store.magicLinks.find(mailedLink.loginId))?.codeTries, 5)
    assert.equal(await refusedWith(verifyCode(services, mailedLink, 'a@example.com')), 'rate_limited')
  })

  test('expired and used are reported only for the right code', async t => {
    const services = await openServices(engine, t)
    const usedLink = await services.sendTo('used@example.com')
    await verifyToken(services, usedLink.token, 'used@example.com')
    assert.equal(await refusedWith(verifyCode(services, usedLink, 'used@example.com')), 'magic_link_used')
    await typeWrongCode(services, usedLink, 'used@example.com')
    const expiredLink = await services.sendTo('late@example.com')
    services.clock.advance(5 * 60_000)
    assert.equal(
      await refusedWith(verifyCode(services, expiredLink, 'late@example.com')),
      'magic_link_expired',
    )
    await typeWrongCode(services, expiredLink, 'late@example.com')
  })

  test('of twenty concurrent uses of a link and its code one signs in', async t => {
    const services = await openServices(engine, t)
    const mailedLink = await services.sendTo('both@example.com')
    const email = address('both@example.com')
    const { won, refused } = await raceVerifications(services, index =>
      index % 5 === 0
        ? { loginId: mailedLink.loginId, code: mailedLink.code, email }
        : { token: mailedLink.token, email },
    )
    assert.equal(won.length, 1)
    assert.deepEqual(refused, Array(19).fill('magic_link_used'))
  })

  test('a link of a suspended account is refused but not consumed, and works after activation', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('held@example.com')
    await services.users.suspend(user.id)
    const mailedLink = await services.sendTo('held@example.com')
    assert.equal(
      await refusedWith(verifyToken(services, mailedLink.token, 'held@example.com')),
      'account_suspended',
    )
    assert.equal(await refusedWith(verifyCode(services, mailedLink, 'held@example.com')), 'account_suspended')
    assert.equal(
      (await services.magicLinks.inspect(mailedLink.token, address('held@example.com'))).state,
      'live',
    )
    await services.users.activate(user.id)
    assert.equal(await refusedWith(verifyToken(services, mailedLink.token, 'held@example.com')), 'none')
  })

  test('signing in on a page returns a cookie instead of tokens', async t => {
    const services = await openServices(engine, t)
    const email = address('page@example.com')
    const { token } = await services.sendTo(email)
    const { cookie, session, ...others } = await services.magicLinks.verify(
      { token, email },
      'page',
      caller(),
    )
    assert.equal('tokens' in others, false)
    assert.equal(session.kind, 'page')
    assert.equal((await services.sessions.authenticateCookie(cookie))?.user.email, email)
  })

  test('neither the token nor the code is stored, and the queued mail is sealed', async t => {
    const services = await openServices(engine, t)
    const mailedLink = await services.sendTo('dump@example.com')
    const link = await services.store.magicLinks.find(mailedLink.loginId)
    const mails = await services.store.outbox.recentFor(address('dump@example.com'), 10)
    const dump = JSON.stringify([link, mails])
    assert.ok(!dump.includes(mailedLink.token))
    assert.ok(!dump.includes(mailedLink.code))
    assert.ok(!dump.includes(encodeURIComponent(mailedLink.link)))
  })
})

function raceVerifications(services: Services, proof: (index: number) => MagicLinkProof) {
  return race(20, index => services.magicLinks.verify(proof(index), 'api', caller()))
}

function verifyToken({ magicLinks }: Services, token: string, email: string, appId?: string) {
  return magicLinks.verify({ token, email: address(email), appId }, 'api', caller())
}

function verifyCode({ magicLinks }: Services, sent: { loginId: string; code: string }, email: string) {
  return magicLinks.verify({ loginId: sent.loginId, code: sent.code, email: address(email) }, 'api', caller())
}

async function typeWrongCode(services: Services, sent: { loginId: string; code: string }, email: string) {
  const call = verifyCode(services, { ...sent, code: otherCode(sent.code) }, email)
  assert.equal(await refusedWith(call), 'magic_link_invalid')
}

function otherCode(code: string): string {
  return `${code.slice(0, -1)}${(Number(code.at(-1)) + 1) % 10}`
}

/** A proxy of `target` whose members are mapped by `change`. */
function viewOf<Target extends object>(
  target: Target,
  change: (name: string | symbol, member: unknown) => unknown,
): Target {
  return new Proxy(target, { get: (inner, name) => change(name, Reflect.get(inner, name)) })
}

function countingCall(method: unknown, port: unknown, counted: (call: () => unknown) => unknown): unknown {
  if (typeof method !== 'function') return method
  return async (...values: unknown[]) => counted(() => Reflect.apply(method, port, values))
}
