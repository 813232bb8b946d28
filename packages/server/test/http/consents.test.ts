import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/ids.ts'
import { forEachEngine } from '../support/engines.ts'
import { openServer } from '../support/http.ts'

forEachEngine(engine => {
  test('a person lists and withdraws consents, and a key only with its scopes', async t => {
    const server = await openServer(engine, t)
    const { user, tokens } = await server.signIn('ada@example.com')
    const consentTo = async (appId: string) => {
      await server.apps.register({ id: appId, name: appId.toUpperCase() })
      const grantedAt = server.clock.now()
      const consent = { id: newId(grantedAt), userId: user.id, appId, scopes: ['openid', 'email'], grantedAt }
      await server.storage.transaction(tx => tx.consents.grant(consent, grantedAt))
      server.clock.advance(1000)
    }
    for (const app of ['shop', 'files', 'games']) await consentTo(app)
    const token = tokens.accessToken
    const firstPage = await server.get('/v1/consents?limit=2', { token })
    assert.deepEqual(
      firstPage.body.data.map((each: { app_id: string }) => each.app_id),
      ['games', 'files'],
    )
    const [{ granted_at, ...newest }] = firstPage.body.data
    assert.deepEqual(newest, { app_id: 'games', name: 'GAMES', scopes: ['email', 'openid'] })
    assert.equal(typeof granted_at, 'string')
    const secondPage = await server.get(`/v1/consents?cursor=${firstPage.body.next_cursor}`, { token })
    assert.equal(secondPage.body.data.length, 1)
    assert.equal(secondPage.body.has_more, false)

    const withdraw = (app: string, credential: string) =>
      server.call('DELETE', `/v1/consents/${app}`, { token: credential })
    assert.equal((await withdraw('games', token)).status, 204)
    for (const app of ['games', 'unknown', 'service-sdk'])
      assert.equal((await withdraw(app, token)).status, 404, app)
    const keyWithScopes = async (scopes: string[]) =>
      (await server.post('/v1/api-keys', { scopes }, { token })).body.key as string
    const readerKey = await keyWithScopes(['account:read'])
    assert.equal((await server.get('/v1/consents', { token: readerKey })).body.data.length, 2)
    assert.equal((await withdraw('files', readerKey)).status, 403)
    assert.equal((await withdraw('files', await keyWithScopes(['account:write']))).status, 204)
    const eve = await server.signIn('eve@example.com')
    assert.equal((await withdraw('shop', eve.tokens.accessToken)).status, 404)
    const { data } = (await server.get('/v1/security-events', { token })).body
    assert.ok(data.some((event: { type: string }) => event.type === 'consent_withdrawn'))
  })
})
