import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { sharedBrowser } from '../support/browser.ts'
import { forEachEngine } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { nginxMissing, runNginx } from '../support/nginx.ts'
import { caller } from '../support/services.ts'
import { newPerson as newBrowser } from '../support/web.ts'
import { EXAMPLES_FOLDER, installExample, startExample } from './example.ts'
import { newPerson, signInOnPage, startRunning } from './running.ts'

const openBrowser = sharedBrowser()
const NEW_KEY = { name: null, scopes: null, expiresAt: null, appId: 'service-sdk', allowedNetworks: [] }

forEachEngine(engine => {
  test('nginx with auth_request lets in browsers that signed in and programs with an agent token', {
    skip: nginxMissing(),
  }, async t => {
    const browser = await openBrowser(t)
    if (!browser || !(await installExample(t, 'nginx'))) return
    const web = await startRunning(engine, t)
    const [port, gatePort] = [await freePort(), await freePort()]
    const site = `http://localhost:${port}`
    const { apps, apiKeys, agentTokens } = web.server.services
    const { secret } = await apps.register({
      id: 'wiki',
      name: 'The Wiki',
      redirectUris: [`${site}/.keyway/callback`],
      audience: site,
      trusted: true,
    })
    await startExample(t, ['nginx', 'gate.mjs'], {
      KEYWAY_URL: web.url,
      KEYWAY_APP_ID: 'wiki',
      KEYWAY_APP_SECRET: secret!,
      KEYWAY_AUDIENCE: site,
      ORIGIN: site,
      PORT: String(gatePort),
    })
    await startNginx(t, { 8081: port, 4000: gatePort, 8000: await startSite(t) })

    const { page } = await newBrowser(browser)
    await page.goto(`${site}/pages?a=1&b=2`)
    await signInOnPage(page, web, 'ada@example.com')
    await page.waitForURL(`${site}/pages?a=1&b=2`)
    assert.equal(await page.locator('body').textContent(), 'ada@example.com sees /pages?a=1&b=2')
    // A sign-in never redirects to another host, even if the target looks like a path of this site.
    for (const to of ['//evil.test/', '/.//evil.test', 'https://evil.test/']) {
      await page.goto(`${site}/.keyway/sign-in?to=${to}`)
      assert.equal(new URL(page.url()).origin, site, to)
    }

    const { user } = await newPerson(web, 'ada@example.com')
    const { key } = await apiKeys.create(user.id, NEW_KEY, caller())
    const { token } = await agentTokens.exchange(key, site, caller())
    const requestSite = async (headers: Record<string, string>) => {
      const answer = await fetch(`${site}/data`, { headers, redirect: 'manual' })
      return { status: answer.status, text: await answer.text() }
    }
    const expected = { status: 200, text: `${user.id} sees /data` }
    assert.deepEqual(await requestSite({ authorization: `Bearer ${token}` }), expected)
    const hubToken = await agentTokens.exchange(key, undefined, caller())
    for (const headers of [
      {},
      { 'x-person': 'eve@example.com' },
      { authorization: `Bearer ${hubToken.token}` },
      { authorization: `Bearer ${key}` },
      { cookie: 'gate=nonsense' },
    ] as Record<string, string>[])
      assert.equal((await requestSite(headers)).status, 401)
  })
})

/** Starts nginx with the example's nginx.conf, in which the ports are replaced. */
async function startNginx(t: TestContext, ports: Record<string, number>): Promise<void> {
  const conf = readFileSync(join(EXAMPLES_FOLDER, 'nginx/nginx.conf'), 'utf8')
  const confWithPorts = conf.replaceAll(/(?<=127\.0\.0\.1:)\d+/g, port => String(ports[port]))
  await runNginx(t, { 'nginx.conf': confWithPorts }, `http://localhost:${ports['8081']}/`)
}

async function startSite(t: TestContext): Promise<number> {
  const server = createServer(({ headers, url }, response) => {
    response.end(`${headers['x-person'] ?? 'nobody'} sees ${url}`)
  }).listen(0, '127.0.0.1')
  t.after(() => void server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
