import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CODE_LIFETIME } from '../../src/authorizations/authorization-code.ts'
import type { RequestParams } from '../../src/authorizations/authorization-request.ts'
import type { CodeRedemption } from '../../src/authorizations/redeem.ts'
import { MINUTE } from '../../src/clock.ts'
import { CALLBACK, newVerifier } from '../support/authorize.ts'
import { forEachEngine } from '../support/engines.ts'
import { address, caller, openServices, race, refusedWith, type Services } from '../support/services.ts'

const NETWORK = '192.0.2.1'
const { verifier, challenge } = newVerifier()
const PARAMS: RequestParams = {
  client_id: 'shop',
  redirect_uri: CALLBACK,
  response_type: 'code',
  scope: 'openid email',
  code_challenge: challenge,
  code_challenge_method: 'S256',
}
const GRANTED_SCOPES = ['openid', 'email']

/** An app that asks for access, and a person who is signed in on the pages. */
async function openAuthorizations(services: Services) {
  await services.apps.register({ id: 'shop', name: 'Shop', redirectUris: [CALLBACK] })
  const { token } = await services.sendTo('ada@example.com')
  const signedIn = await services.magicLinks.verify(
    { token, email: address('ada@example.com') },
    'page',
    caller(),
  )
  const authorizations = await services.authorizations()
  return {
    ...services,
    signedIn,
    authorizations,
    async codeFor(params: Record<string, string> = {}, pushedId: string | null = null): Promise<string> {
      const checkedRequest = await authorizations.resume({ ...PARAMS, ...params }, pushedId, NETWORK)
      assert.ok('request' in checkedRequest)
      const request = { ...checkedRequest, firstSentAt: services.clock.now() }
      const uri = await authorizations.issue(
        request,
        signedIn,
        GRANTED_SCOPES,
        caller('192.0.2.9', 'a browser'),
      )
      return uri === null ? '' : new URL(uri).searchParams.get('code')!
    },
    async redeem(code: string, changes: Partial<CodeRedemption> = {}, from = authorizations) {
      const app = changes.app ?? (await services.apps.find('shop'))
      const redemption = { code, redirectUri: CALLBACK, verifier, audience: null, ...changes, app }
      return from.redeem(redemption, caller('198.51.100.1', 'a server'))
    },
    async accessRefusal(sessionId: string) {
      const { session, user } = (await services.store.sessions.findWithUser(sessionId))!
      const { accessToken } = await services.sessions.appTokens(user, session)
      return refusedWith(services.sessions.authenticate(accessToken))
    },
  }
}

function errorOf(
  outcome: Awaited<ReturnType<Awaited<ReturnType<typeof openAuthorizations>>['redeem']>>,
): string {
  return 'refusal' in outcome ? outcome.refusal.error : 'none'
}

forEachEngine(engine => {
  test('a code opens a session of its own for the app, which shows the browser of the person', async t => {
    const { redeem, codeFor, signedIn, accessRefusal } = await openAuthorizations(
      await openServices(engine, t),
    )
    const redemptionResult = await redeem(await codeFor({ nonce: 'n' }))
    assert.ok('session' in redemptionResult)
    const { session, nonce } = redemptionResult
    assert.equal(nonce, 'n')
    assert.deepEqual(session.grant, { scopes: GRANTED_SCOPES, audience: null, signInId: signedIn.session.id })
    assert.deepEqual([session.kind, session.appId], ['app', 'shop'])
    assert.deepEqual([session.network, session.client], ['192.0.2.9', 'a browser'])
    assert.equal(session.authTime, signedIn.session.createdAt)
    assert.equal(await accessRefusal(session.id), 'none')
  })

  test('a person gets at most 120 codes a minute, and the app learns that it must wait', async t => {
    const services = await openServices(engine, t)
    const { codeFor, authorizations, signedIn } = await openAuthorizations(services)
    for (let issued = 0; issued < 120; issued++) assert.notEqual(await codeFor(), '')
    const checkedRequest = await authorizations.resume(PARAMS, null, NETWORK)
    assert.ok('request' in checkedRequest)
    const request = { ...checkedRequest, firstSentAt: services.clock.now() }
    const refusalUri = new URL((await authorizations.issue(request, signedIn, null, caller()))!)
    assert.equal(refusalUri.searchParams.get('error'), 'temporarily_unavailable')
    assert.equal(refusalUri.searchParams.get('code'), null)
    services.clock.advance(MINUTE)
    assert.notEqual(await codeFor(), '')
  })

  test('of twenty redemptions of one code at once on two nodes one succeeds', async t => {
    const services = await openServices(engine, t)
    const { redeem, codeFor, authorizations } = await openAuthorizations(services)
    const node = await services.opened.reopen()
    const otherNode = await openServices(engine, t, { on: { node, of: services.opened } })
    const nodes = [authorizations, await otherNode.authorizations()]
    const code = await codeFor()
    const outcomes = await race(20, index => redeem(code, {}, nodes[index % 2]))
    assert.deepEqual(outcomes.refused, [])
    assert.equal(outcomes.won.filter(outcome => 'session' in outcome).length, 1)
    assert.deepEqual(new Set(outcomes.won.map(errorOf)), new Set(['none', 'invalid_grant']))
  })

  test('of twenty refreshes of an app at once on two nodes one succeeds, and the others end the session as reuse', async t => {
    const services = await openServices(engine, t)
    const { redeem, codeFor, accessRefusal } = await openAuthorizations(services)
    const node = await services.opened.reopen()
    const otherNode = await openServices(engine, t, { on: { node, of: services.opened } })
    const nodes = [services.sessions, otherNode.sessions]
    const redemptionResult = await redeem(await codeFor())
    assert.ok('session' in redemptionResult)
    const { refreshToken } = await services.sessions.appTokens(
      redemptionResult.user,
      redemptionResult.session,
    )
    const { won, refused } = await race(20, index =>
      nodes[index % 2]!.refreshForApp(refreshToken, 'shop', null, caller()),
    )
    assert.equal(won.length, 1)
    assert.ok(refused.includes('refresh_token_reused'))
    assert.equal(await accessRefusal(redemptionResult.session.id), 'invalid_token')
  })

  test('signing in again in the same browser keeps what apps got, and signing out then ends it', async t => {
    const services = await openServices(engine, t)
    const { redeem, codeFor, signedIn, accessRefusal, sessions } = await openAuthorizations(services)
    const redemptionResult = await redeem(await codeFor())
    assert.ok('session' in redemptionResult)
    const signInAs = async (email: string) => {
      const { token } = await services.sendTo(email)
      return services.magicLinks.verify({ token, email: address(email) }, 'page', caller())
    }
    const secondSignIn = await signInAs('ada@example.com')
    await sessions.replace(signedIn.session, secondSignIn.session, caller())
    assert.equal((await services.store.sessions.find(signedIn.session.id))?.endedBy, 'revoked')
    assert.equal(await accessRefusal(redemptionResult.session.id), 'none')
    const eve = await signInAs('eve@example.com')
    await sessions.replace(secondSignIn.session, eve.session, caller())
    assert.equal(
      await accessRefusal(redemptionResult.session.id),
      'invalid_token',
      'another person signed in in this browser',
    )
  })

  test('a stolen code is useless to another client, without the verifier, and at another redirect URI', async t => {
    const services = await openServices(engine, t)
    const { redeem, codeFor, accessRefusal } = await openAuthorizations(services)
    await services.apps.register({ id: 'thief', name: 'Thief', redirectUris: [CALLBACK] })
    const otherClient = await services.apps.find('thief')
    const code = await codeFor()
    const wrongRedemptions: Partial<CodeRedemption>[] = [
      { app: otherClient },
      { verifier: null },
      { verifier: newVerifier().verifier },
      { verifier: challenge },
      { redirectUri: `${CALLBACK}/` },
      { redirectUri: 'https://thief.example.com/' },
    ]
    for (const changes of wrongRedemptions)
      assert.equal(errorOf(await redeem(code, changes)), 'invalid_grant')
    const redemptionResult = await redeem(code)
    assert.ok('session' in redemptionResult, 'none of these consumed the code')
    for (const changes of wrongRedemptions)
      assert.equal(errorOf(await redeem(code, changes)), 'invalid_grant')
    assert.equal(
      await accessRefusal(redemptionResult.session.id),
      'none',
      'nor ended the session that it opened',
    )
  })

  test('a code that is redeemed again by its client ends the session that it opened', async t => {
    const { redeem, codeFor, accessRefusal } = await openAuthorizations(await openServices(engine, t))
    const code = await codeFor()
    const redemptionResult = await redeem(code)
    assert.ok('session' in redemptionResult)
    assert.equal(errorOf(await redeem(code)), 'invalid_grant')
    assert.equal(await accessRefusal(redemptionResult.session.id), 'invalid_token')
    assert.equal(errorOf(await redeem(code)), 'invalid_grant')
  })

  test('a code is valid until its last millisecond', async t => {
    const { redeem, codeFor, clock } = await openAuthorizations(await openServices(engine, t))
    const [first, second] = [await codeFor(), await codeFor()]
    clock.advance(CODE_LIFETIME - 1)
    assert.ok('session' in (await redeem(first)))
    clock.advance(1)
    assert.equal(errorOf(await redeem(second)), 'invalid_grant')
    assert.equal(errorOf(await redeem('svo_unknown')), 'invalid_grant')
  })

  test('a verifier is refused for a code without a challenge: somebody removed it from the request', async t => {
    const { redeem, authorizations, signedIn, clock } = await openAuthorizations(
      await openServices(engine, t),
    )
    const { code_challenge: _, code_challenge_method: __, ...paramsWithoutChallenge } = PARAMS
    const checkedRequest = await authorizations.resume(
      { ...paramsWithoutChallenge, nonce: 'n' },
      null,
      NETWORK,
    )
    assert.ok('request' in checkedRequest)
    const uri = await authorizations.issue(
      { ...checkedRequest, firstSentAt: clock.now() },
      signedIn,
      GRANTED_SCOPES,
      caller(),
    )
    const code = new URL(uri!).searchParams.get('code')!
    assert.equal(errorOf(await redeem(code)), 'invalid_grant')
    assert.equal(errorOf(await redeem(code, { verifier: null })), 'none')
  })

  test('a code is void once the sign-in or the consent ended, or the person was suspended', async t => {
    const services = await openServices(engine, t)
    const { redeem, codeFor, signedIn, consents } = await openAuthorizations(services)
    const { user, session } = signedIn
    const codeBeforeWithdrawal = await codeFor()
    await consents.withdraw(user.id, 'shop', caller())
    assert.equal(errorOf(await redeem(codeBeforeWithdrawal)), 'invalid_grant')
    const codeBeforeSuspension = await codeFor()
    await services.users.suspend(user.id)
    assert.equal(errorOf(await redeem(codeBeforeSuspension)), 'invalid_grant')
    await services.users.activate(user.id)
    const codeBeforeSignOut = await codeFor()
    await services.sessions.end(user.id, session.id, caller())
    assert.equal(errorOf(await redeem(codeBeforeSignOut)), 'invalid_grant')
  })

  test('withdrawing a consent, ending the session and suspending the person end what was issued, on every node', async t => {
    const services = await openServices(engine, t)
    const { redeem, codeFor, signedIn, accessRefusal, consents } = await openAuthorizations(services)
    const node = await services.opened.reopen()
    const otherNode = await openServices(engine, t, { on: { node, of: services.opened } })
    const { user } = signedIn
    const issueTokens = async () => {
      const redemptionResult = await redeem(await codeFor())
      assert.ok('session' in redemptionResult)
      const { session } = redemptionResult
      const { accessToken, refreshToken } = await services.sessions.appTokens(user, session)
      return async () => [
        await accessRefusal(session.id),
        await refusedWith(otherNode.sessions.authenticate(accessToken)),
        await refusedWith(otherNode.sessions.refreshForApp(refreshToken, 'shop', null, caller())),
      ]
    }
    const allRefusalCodes = ['invalid_token', 'invalid_token', 'invalid_refresh_token']
    const refusalsOfFirstTokens = await issueTokens()
    assert.deepEqual(await refusalsOfFirstTokens(), ['none', 'none', 'none'])
    await consents.withdraw(user.id, 'shop', caller())
    assert.deepEqual(await refusalsOfFirstTokens(), allRefusalCodes)
    assert.equal(await refusedWith(consents.withdraw(user.id, 'shop', caller())), 'not_found')

    const refusalsOfSecondTokens = await issueTokens()
    const { rows } = await services.sessions.list(user.id, { limit: 10, after: null })
    const appSessionRow = rows.find(session => session.kind === 'app')!
    await services.sessions.end(user.id, appSessionRow.id, caller())
    assert.deepEqual(await refusalsOfSecondTokens(), allRefusalCodes)

    const refusalsOfThirdTokens = await issueTokens()
    await services.users.suspend(user.id)
    assert.deepEqual(await refusalsOfThirdTokens(), allRefusalCodes)
  })

  test('a pushed request gets one code', async t => {
    const { codeFor, authorizations, clock } = await openAuthorizations(await openServices(engine, t))
    const { requestUri, expiresIn } = authorizations.push(PARAMS)
    const query = new URLSearchParams({ client_id: 'shop', request_uri: requestUri })
    const checkedRequest = await authorizations.begin(query, NETWORK)
    assert.ok('request' in checkedRequest)
    assert.notEqual(await codeFor({}, checkedRequest.pushedId), '')
    assert.equal(await codeFor({}, checkedRequest.pushedId), '')
    clock.advance(expiresIn * 1000 - 1)
    assert.ok('request' in (await authorizations.begin(query, NETWORK)))
    clock.advance(1)
    assert.ok('unusable' in (await authorizations.begin(query, NETWORK)))
  })

  test('the removal of an app ends its consents, and one that is registered under its id later has none', async t => {
    const services = await openServices(engine, t)
    const { codeFor, signedIn, authorizations, clock } = await openAuthorizations(services)
    await codeFor()
    await services.apps.remove('shop')
    const { rows } = await services.consents.list(signedIn.user.id, { limit: 10, after: null })
    assert.deepEqual(rows, [])
    clock.advance(1)
    await services.apps.register({ id: 'shop', name: 'Another', redirectUris: [CALLBACK] })
    const checkedRequest = await authorizations.resume(PARAMS, null, NETWORK)
    assert.ok('request' in checkedRequest)
    const decision = await authorizations.decide({ ...checkedRequest, firstSentAt: clock.now() }, signedIn)
    assert.ok('needs' in decision)
    assert.equal(decision.needs, 'consent')
  })
})
