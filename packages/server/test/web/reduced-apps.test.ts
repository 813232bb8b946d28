import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt } from 'jose'
import { authorizePath, codeOf, newVerifier, registerShop } from '../support/authorize.ts'
import { forEachEngine } from '../support/engines.ts'
import { signedInClient } from '../support/page-client.ts'
import { engineSettings, startWeb } from '../support/web.ts'

const AUDIENCE = 'https://files.example.com'

forEachEngine(engine => {
  test('a refreshed token has no scope that the operator took from the app, and none is issued for an audience that is gone', async t => {
    const web = await startWeb(t, await engineSettings(engine, t))
    const { apps } = web.server.services
    await registerShop(web, { isPublic: true, scopes: ['files:read', 'files:write'] })
    await registerShop(web, { id: 'files', audience: AUDIENCE })
    const { verifier, challenge } = newVerifier()
    const scope = 'offline_access files:read files:write'
    const parameters = { scope, prompt: 'consent', resource: AUDIENCE }
    const code = await codeOf(await signedInClient(web), authorizePath(challenge, parameters))
    const requestToken = async (fields: Record<string, string>) => {
      const body = new URLSearchParams({ client_id: 'shop', ...fields })
      const answer = await fetch(`${web.url}/oauth/token`, { method: 'POST', body })
      return (await answer.json()) as Record<string, string>
    }
    const refresh = (refresh_token: string) => requestToken({ grant_type: 'refresh_token', refresh_token })
    const firstTokens = await requestToken({
      grant_type: 'authorization_code',
      code,
      code_verifier: verifier,
    })
    assert.equal(decodeJwt(firstTokens.access_token!).scope, scope)
    await apps.change('shop', { scopes: ['files:read'] })
    const secondTokens = await refresh(firstTokens.refresh_token!)
    assert.equal(secondTokens.scope, 'offline_access files:read')
    assert.equal(decodeJwt(secondTokens.access_token!).scope, secondTokens.scope)
    await apps.remove('files')
    assert.equal((await refresh(secondTokens.refresh_token!)).error, 'invalid_grant')
  })
})
