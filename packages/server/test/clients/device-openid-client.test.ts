import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as client from 'openid-client'
import { forEachEngine } from '../support/engines.ts'
import { type Client, signedInClient } from '../support/page-client.ts'
import { startRunning } from './running.ts'

const ADA = 'ada@example.com'

forEachEngine(engine => {
  test('openid-client connects a device: a person approves it on the page, and it gets tokens that refresh', async t => {
    const { web, config, browser, user } = await openDevice(engine, t)
    const scope = 'openid email offline_access account:read'
    const authorization = await client.initiateDeviceAuthorization(config, { scope })
    const page = await (await browser.get(pathOf(authorization.verification_uri_complete!))).text()
    for (const shown of [
      'A television',
      authorization.user_code,
      'see your e-mail address',
      'see your profile',
    ])
      assert.ok(page.includes(shown), shown)
    await approve(browser, page)

    const tokens = await client.pollDeviceAuthorizationGrant(config, withoutWaiting(authorization))
    assert.deepEqual([tokens.claims()?.sub, tokens.claims()?.email, tokens.scope], [user.id, ADA, scope])
    const { sessions, consents } = web.server.services
    const authenticatedSession = await sessions.authenticate(tokens.access_token)
    assert.deepEqual([authenticatedSession.user.id, authenticatedSession.session.appId], [user.id, 'tv'])
    const refreshedTokens = await client.refreshTokenGrant(config, tokens.refresh_token!)
    assert.notEqual(refreshedTokens.refresh_token, tokens.refresh_token)

    const listedConsents = await consents.list(user.id, { limit: 10, after: null })
    assert.deepEqual(
      listedConsents.rows.map(({ appId }) => appId),
      ['tv'],
    )
    await consents.withdraw(user.id, 'tv', { address: '127.0.0.1', network: '127.0.0.1', client: null })
    await assert.rejects(sessions.authenticate(refreshedTokens.access_token))
    await assert.rejects(
      client.refreshTokenGrant(config, refreshedTokens.refresh_token!),
      /invalid_grant|error/,
    )
  })

  test('a consent that was withdrawn before the device polled gives it nothing', async t => {
    const { web, config, browser, user } = await openDevice(engine, t)
    const authorization = await client.initiateDeviceAuthorization(config, { scope: 'openid' })
    await approve(browser, await (await browser.get(pathOf(authorization.verification_uri_complete!))).text())
    const caller = { address: '127.0.0.1', network: '127.0.0.1', client: null }
    await web.server.services.consents.withdraw(user.id, 'tv', caller)
    await assert.rejects(client.pollDeviceAuthorizationGrant(config, withoutWaiting(authorization)), {
      error: 'access_denied',
    })
  })
})

async function openDevice(engine: Parameters<typeof startRunning>[0], t: Parameters<typeof startRunning>[1]) {
  const web = await startRunning(engine, t)
  await web.server.services.apps.register({ id: 'tv', name: 'A television', isPublic: true })
  const browser = await signedInClient(web, ADA)
  const user = await web.server.services.users.find(ADA)
  const options = { execute: [client.allowInsecureRequests] }
  const config = await client.discovery(new URL(web.url), 'tv', undefined, client.None(), options)
  return { web, config, browser, user }
}

function pathOf(address: string): string {
  const { pathname, search } = new URL(address)
  return pathname + search
}

/** The same authorization with a short polling interval: it is approved already, so the first poll succeeds. */
function withoutWaiting(
  authorization: client.DeviceAuthorizationResponse,
): client.DeviceAuthorizationResponse {
  return { ...authorization, interval: 0.01 }
}

async function approve(browser: Client, page: string): Promise<void> {
  const field = (name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(page)![1]!
  const form = { form_token: field('form_token'), proof: field('proof') }
  const answer = await browser.post('/device/decision', { ...form, decision: 'approve', compared: 'yes' })
  assert.equal(answer.status, 200)
}
