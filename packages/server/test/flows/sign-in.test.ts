import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MagicLinkProof } from '../../src/magic-links/magic-link.ts'
import type { Transaction } from '../../src/store.ts'
import { forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, race, refusedWith, type Services } from '../support/services.ts'

const page = { limit: 50, after: null }

/** Reads everything that is created together with an account. */
async function belongings({ store, accounts, mailsTo }: Services, email: string) {
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

const FRESH = {
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
    const signedIn = await services.signIn('New@Example.com')
    assert.equal(signedIn.isNewUser, true)
    assert.deepEqual(
      { ...signedIn.user, id: '' },
      { ...signedIn.user, id: '', email: 'new@example.com', name: null, role: 'user', status: 'active' },
    )
    const { user, ...has } = (await belongings(services, 'new@example.com'))!
    assert.equal(user.id, signedIn.user.id)
    assert.deepEqual(has, FRESH)
    assert.equal((await services.mailsTo('new@example.com', 'welcome'))[0]?.trialCredit, '2.00')
    assert.equal((await services.sessions.authenticate(signedIn.tokens.accessToken)).user.id, user.id)
  })

  test('signing in again grants no second credit, plan or authorisation', async t => {
    const services = await openServices(engine, t)
    const first = await services.signIn('a@example.com')
    for (let again = 0; again < 3; again++) {
      const next = await services.signIn('A@EXAMPLE.com')
      assert.equal(next.isNewUser, false)
      assert.equal(next.user.id, first.user.id)
      assert.notEqual(next.session.id, first.session.id)
    }
    const { user: _, events, ...has } = (await belongings(services, 'a@example.com'))!
    assert.deepEqual({ ...has, events: FRESH.events }, FRESH)
    assert.deepEqual(events, ['account_created', 'sign_in', 'sign_in', 'sign_in', 'sign_in'])
  })

  test('if any statement of an account’s creation fails, nothing of it is stored, and the link still works', async t => {
    const services = await openServices(engine, t)
    const email = address('half@example.com')
    const { token } = await services.sendTo(email)
    const untouched = services.storage.transaction
    let statements = 0
    for (let failing = 1; ; failing++) {
      statements = 0
      services.storage.transaction = (work, landed) =>
        untouched.call(services.storage, tx => work(failAt(tx, failing)), landed) as never
      const call = services.magicLinks.verify({ token, email }, 'api', caller())
      const failed = await call.then(
        () => false,
        () => true,
      )
      services.storage.transaction = untouched
      if (!failed) break
      assert.equal(await belongings(services, email), null, `failing statement ${failing}`)
      assert.equal((await services.mailsTo(email, 'welcome')).length, 0)
      assert.equal((await services.magicLinks.inspect(token, email)).state, 'live')
    }
    assert.ok(statements > 10, 'every statement of the transaction failed once')
    const { user: _, ...has } = (await belongings(services, email))!
    assert.deepEqual(has, FRESH)

    /** A transaction whose n-th statement fails, as with a lost connection. */
    function failAt(tx: Transaction, failing: number): Transaction {
      const counted = (call: () => unknown) => {
        if (++statements === failing) throw new Error('the connection was lost')
        return call()
      }
      return viewOf(tx, (name, port) =>
        name === 'publish'
          ? port
          : viewOf(port as object, (_, method) => countingCall(method, port, counted)),
      )
    }
  })

  test('signing up again after a deletion creates a new account without a second credit', async t => {
    const services = await openServices(engine, t)
    const first = await services.signIn('back@example.com')
    await services.users.delete(first.user.id)
    const second = await services.signIn('back@example.com')
    assert.equal(second.isNewUser, true)
    assert.notEqual(second.user.id, first.user.id)
    const { balance, ledger, apps, plan } = (await belongings(services, 'back@example.com'))!
    assert.deepEqual(
      { balance, ledger, apps, plan },
      { balance: 0, ledger: [], apps: FRESH.apps, plan: 'free' },
    )
    assert.equal(await refusedWith(services.sessions.authenticate(first.tokens.accessToken)), 'invalid_token')
  })

  test('of twenty concurrent verifications of one link one signs in, and one account is created', async t => {
    const services = await openServices(engine, t)
    const email = address('race@example.com')
    const { token } = await services.sendTo(email)
    const { won, refused } = await raceOf(services, () => ({ token, email }))
    assert.equal(won.length, 1)
    assert.deepEqual(refused, Array(19).fill('magic_link_used'))
    const { user: _, ...has } = (await belongings(services, email))!
    assert.deepEqual(has, FRESH)
    assert.equal((await services.sessions.list(won[0]!.user.id, page)).rows.length, 1)
  })

  test('twenty links of a new address used concurrently create one complete account', async t => {
    const services = await openServices(engine, t)
    const email = address('many@example.com')
    const links: { token: string }[] = []
    for (let index = 0; index < 20; index++) links.push(await services.sendTo(email))
    const { won, refused } = await raceOf(services, index => ({ token: links[index]!.token, email }))
    assert.ok(won.length >= 1)
    assert.deepEqual(new Set(refused), new Set(['magic_link_used']))
    assert.equal(new Set(won.map(({ user }) => user.id)).size, 1)
    const { user: _, events, ...has } = (await belongings(services, email))!
    assert.deepEqual({ ...has, events: FRESH.events }, FRESH)
    assert.equal(events.filter(type => type === 'account_created').length, 1)
  })

  test('a link is valid until its last millisecond', async t => {
    const services = await openServices(engine, t)
    const early = await services.sendTo('early@example.com')
    const late = await services.sendTo('late@example.com')
    services.clock.advance(5 * 60_000 - 1)
    assert.equal((await services.magicLinks.inspect(early.token, address('early@example.com'))).state, 'live')
    assert.equal(await refusedWith(verifyToken(services, early.token, 'early@example.com')), 'none')
    services.clock.advance(1)
    assert.equal(
      (await services.magicLinks.inspect(late.token, address('late@example.com'))).state,
      'expired',
    )
    assert.equal(
      await refusedWith(verifyToken(services, late.token, 'late@example.com')),
      'magic_link_expired',
    )
    assert.equal(await belongings(services, 'late@example.com'), null)
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

  test('a wrong address, app or token is refused alike, and does not consume the link', async t => {
    const services = await openServices(engine, t)
    const a = await services.sendTo('a@example.com', 'my-app')
    const b = await services.sendTo('b@example.com')
    const wrong = [
      verifyToken(services, a.token, 'b@example.com'),
      verifyToken(services, b.token, 'a@example.com'),
      verifyToken(services, a.token, 'a@example.com', 'console'),
      verifyToken(services, `${a.token}x`, 'a@example.com'),
      verifyToken(services, 'A'.repeat(43), 'stranger@example.com'),
      verifyToken(services, '', 'a@example.com'),
    ]
    assert.deepEqual(
      await Promise.all(wrong.map(refusedWith)),
      wrong.map(() => 'magic_link_invalid'),
    )
    assert.equal((await services.magicLinks.inspect(a.token, address('b@example.com'))).state, 'invalid')
    const signedIn = await verifyToken(services, a.token, 'a@example.com', 'my-app')
    assert.equal(signedIn.session.appId, 'my-app')
    const other = await verifyToken(services, b.token, 'b@example.com')
    assert.equal(other.session.appId, 'console')
    assert.equal(other.user.email, 'b@example.com')
  })

  test('several links may be live, and using one invalidates only the others of the same address', async t => {
    const services = await openServices(engine, t)
    const links = [await services.sendTo('a@example.com'), await services.sendTo('a@example.com')]
    const later = await services.sendTo('a@example.com')
    const neighbour = await services.sendTo('b@example.com')
    assert.equal(await refusedWith(verifyToken(services, links[1]!.token, 'a@example.com')), 'none')
    for (const { token } of [links[0]!, later]) {
      assert.equal(await refusedWith(verifyToken(services, token, 'a@example.com')), 'magic_link_used')
    }
    assert.equal(await refusedWith(verifyToken(services, neighbour.token, 'b@example.com')), 'none')
  })

  test('the code signs in under its login id and under no other', async t => {
    const services = await openServices(engine, t)
    const a = await services.sendTo('a@example.com')
    const other = await services.sendTo('a@example.com')
    assert.match(a.code, /^\d{8}$/)
    assert.equal(
      await refusedWith(verifyCode(services, { ...a, loginId: other.loginId }, 'a@example.com')),
      'magic_link_invalid',
    )
    for (const loginId of ['', 'no-uuid', '00000000-0000-7000-8000-000000000000']) {
      assert.equal(
        await refusedWith(verifyCode(services, { ...a, loginId }, 'a@example.com')),
        'magic_link_invalid',
      )
    }
    assert.equal(await refusedWith(verifyCode(services, a, 'b@example.com')), 'magic_link_invalid')
    const signedIn = await verifyCode(services, { ...a, loginId: a.loginId.toUpperCase() }, 'a@example.com')
    assert.equal(signedIn.user.email, 'a@example.com')
    assert.equal(await refusedWith(verifyToken(services, a.token, 'a@example.com')), 'magic_link_used')
  })

  test('a code is refused under another app, without using up one of its attempts', async t => {
    const services = await openServices(engine, t)
    const sent = await services.sendTo('a@example.com', 'other')
    const { loginId, code } = sent
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
    const sent = await services.sendTo('a@example.com')
    for (let attempt = 0; attempt < 4; attempt++) await wrongCode(services, sent, 'a@example.com')
    assert.equal(await refusedWith(verifyCode(services, sent, 'a@example.com')), 'none')
  })

  test('after five wrong codes only the link works', async t => {
    const services = await openServices(engine, t)
    const sent = await services.sendTo('a@example.com')
    for (let attempt = 0; attempt < 5; attempt++) await wrongCode(services, sent, 'a@example.com')
    assert.equal(await refusedWith(verifyCode(services, sent, 'a@example.com')), 'rate_limited')
    assert.equal(await refusedWith(verifyToken(services, sent.token, 'a@example.com')), 'none')
  })

  test('twenty concurrent wrong codes use exactly five tries', async t => {
    const services = await openServices(engine, t)
    const sent = await services.sendTo('a@example.com')
    const { refused } = await raceOf(services, () => ({
      loginId: sent.loginId,
      code: otherCode(sent.code),
      email: address('a@example.com'),
    }))
    assert.deepEqual(refused.toSorted(), [
      ...Array(5).fill('magic_link_invalid'),
      ...Array(15).fill('rate_limited'),
    ])
    assert.equal((await services.store.magicLinks.find(sent.loginId))?.codeTries, 5)
    assert.equal(await refusedWith(verifyCode(services, sent, 'a@example.com')), 'rate_limited')
  })

  test('expired and used are reported only for the right code', async t => {
    const services = await openServices(engine, t)
    const used = await services.sendTo('used@example.com')
    await verifyToken(services, used.token, 'used@example.com')
    assert.equal(await refusedWith(verifyCode(services, used, 'used@example.com')), 'magic_link_used')
    await wrongCode(services, used, 'used@example.com')
    const late = await services.sendTo('late@example.com')
    services.clock.advance(5 * 60_000)
    assert.equal(await refusedWith(verifyCode(services, late, 'late@example.com')), 'magic_link_expired')
    await wrongCode(services, late, 'late@example.com')
  })

  test('of twenty concurrent uses of a link and its code one signs in', async t => {
    const services = await openServices(engine, t)
    const sent = await services.sendTo('both@example.com')
    const email = address('both@example.com')
    const { won, refused } = await raceOf(services, index =>
      index % 5 === 0 ? { loginId: sent.loginId, code: sent.code, email } : { token: sent.token, email },
    )
    assert.equal(won.length, 1)
    assert.deepEqual(refused, Array(19).fill('magic_link_used'))
  })

  test('a link of a suspended account is refused but not consumed, and works after activation', async t => {
    const services = await openServices(engine, t)
    const { user } = await services.signIn('held@example.com')
    await services.users.suspend(user.id)
    const sent = await services.sendTo('held@example.com')
    assert.equal(
      await refusedWith(verifyToken(services, sent.token, 'held@example.com')),
      'account_suspended',
    )
    assert.equal(await refusedWith(verifyCode(services, sent, 'held@example.com')), 'account_suspended')
    assert.equal((await services.magicLinks.inspect(sent.token, address('held@example.com'))).state, 'live')
    await services.users.activate(user.id)
    assert.equal(await refusedWith(verifyToken(services, sent.token, 'held@example.com')), 'none')
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
    const sent = await services.sendTo('dump@example.com')
    const link = await services.store.magicLinks.find(sent.loginId)
    const mails = await services.store.outbox.recentFor(address('dump@example.com'), 10)
    const dump = JSON.stringify([link, mails])
    assert.ok(!dump.includes(sent.token))
    assert.ok(!dump.includes(sent.code))
    assert.ok(!dump.includes(encodeURIComponent(sent.link)))
  })
})

function raceOf(services: Services, proof: (index: number) => MagicLinkProof) {
  return race(20, index => services.magicLinks.verify(proof(index), 'api', caller()))
}

function verifyToken({ magicLinks }: Services, token: string, email: string, appId?: string) {
  return magicLinks.verify({ token, email: address(email), appId }, 'api', caller())
}

function verifyCode({ magicLinks }: Services, sent: { loginId: string; code: string }, email: string) {
  return magicLinks.verify({ loginId: sent.loginId, code: sent.code, email: address(email) }, 'api', caller())
}

async function wrongCode(services: Services, sent: { loginId: string; code: string }, email: string) {
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
