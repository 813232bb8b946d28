import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { codeOf } from '../support/authorize.ts'
import { forEachEngine } from '../support/engines.ts'
import { signedInClient } from '../support/page-client.ts'
import { caller } from '../support/services.ts'
import { newPerson, PYTHON, packageMissing, startRunning } from './running.ts'

const ADA = 'ada@example.com'
const CALLBACK = 'https://shop.example.com/callback'
const NEW_KEY = { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }
const skip = packageMissing('python3-authlib', [PYTHON, '-c', 'import authlib, requests'])

forEachEngine(engine => {
  test('python3-authlib gets an agent token with a key as its client credentials', { skip }, async t => {
    const web = await startRunning(engine, t)
    const { user } = await newPerson(web, ADA)
    const { apiKeys, agentTokens } = web.server.services
    const { key, apiKey } = await apiKeys.create(user.id, NEW_KEY, caller())
    const client = startClient(t, web.url, 'client_credentials')
    client.writeLine({ client_id: apiKey.id, client_secret: key })
    const { access_token, token_type } = await client.readJson()
    assert.equal(token_type, 'Bearer')
    assert.equal((await agentTokens.verify(access_token))?.keyId, apiKey.id)
  })

  test('python3-authlib signs a person in with PKCE, checks the id token and refreshes', {
    skip,
  }, async t => {
    const web = await startRunning(engine, t)
    const { secret } = await web.server.services.apps.register({
      id: 'shop',
      name: 'The Shop',
      redirectUris: [CALLBACK],
    })
    const client = startClient(t, web.url, 'authorization_code')
    client.writeLine({
      client_id: 'shop',
      client_secret: secret,
      redirect_uri: CALLBACK,
      scope: 'openid email offline_access',
    })
    const authorizationUrl = new URL(await client.readJson())
    const browser = await signedInClient(web, ADA)
    const code = await codeOf(browser, authorizationUrl.pathname + authorizationUrl.search)
    const state = authorizationUrl.searchParams.get('state')!
    client.writeLine(`${CALLBACK}?${new URLSearchParams({ code, state, iss: web.url })}`)
    const { claims, userinfo, token, refreshed } = await client.readJson()
    const user = await web.server.services.users.find(ADA)
    assert.deepEqual([claims.sub, claims.email, claims.iss, claims.aud], [user.id, ADA, web.url, 'shop'])
    assert.deepEqual([userinfo.sub, userinfo.email], [user.id, ADA])
    assert.notEqual(refreshed.refresh_token, token.refresh_token)
    assert.equal((await web.server.services.sessions.authenticate(refreshed.access_token)).user.id, user.id)
  })
})

/** Starts the Python program, which reads and writes lines of JSON. */
function startClient(t: TestContext, issuer: string, grant: string) {
  const script = join(import.meta.dirname, 'authlib_client.py')
  const env = { ...process.env, AUTHLIB_INSECURE_TRANSPORT: '1', PYTHONUNBUFFERED: '1' }
  const child = spawn(PYTHON, [script, issuer, grant], { env })
  t.after(() => void child.kill('SIGKILL'))
  let stderr = ''
  child.stderr.on('data', chunk => (stderr += chunk))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return {
    writeLine: (value: object | string) =>
      child.stdin.write(`${typeof value === 'string' ? value : JSON.stringify(value)}\n`),
    async readJson() {
      const { value, done } = await lines.next()
      if (!done) return JSON.parse(value)
      await once(child, 'close').catch(() => {})
      throw new Error(`the client ended:\n${stderr}`)
    },
  }
}
