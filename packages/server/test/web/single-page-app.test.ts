import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { axeSource, sharedBrowser } from '../support/browser.ts'
import { newPerson, startWeb, typeCode } from '../support/web.ts'

const openBrowser = sharedBrowser()

/** A single-page app without any library: PKCE by the browser's own cryptography, tokens by fetch. */
const SCRIPT = `
const [issuer, id] = [document.body.dataset.issuer, 'spa']
const show = text => { document.querySelector('output').textContent = text }
const base64url = bytes => btoa(String.fromCharCode(...new Uint8Array(bytes)))
  .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)))
const redirect_uri = location.origin + '/'

document.querySelector('button').onclick = async () => {
  const { authorization_endpoint } = await (await fetch(issuer + '/.well-known/openid-configuration')).json()
  const [verifier, state] = [random(), random()]
  sessionStorage.setItem('verifier', verifier)
  sessionStorage.setItem('state', state)
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  location = authorization_endpoint + '?' + new URLSearchParams({
    client_id: id, redirect_uri, response_type: 'code', scope: 'openid email', state,
    code_challenge: base64url(hash), code_challenge_method: 'S256',
  })
}

const answer = new URLSearchParams(location.search)
if (answer.has('code')) {
  if (answer.get('state') !== sessionStorage.getItem('state') || answer.get('iss') !== issuer) throw new Error('mix-up')
  const tokens = await (await fetch(issuer + '/oauth/token', {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code', code: answer.get('code'), redirect_uri, client_id: id,
      code_verifier: sessionStorage.getItem('verifier'),
    }),
  })).json()
  const headers = { authorization: 'Bearer ' + tokens.access_token }
  const { email } = await (await fetch(issuer + '/oauth/userinfo', { headers })).json()
  show('Hello ' + email)
}
if (answer.has('error')) show(answer.get('error'))
`

async function serveApp(t: TestContext) {
  let issuer = ''
  const server = createServer((request, response) => {
    const isScript = request.url === '/app.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    response.end(
      isScript
        ? SCRIPT
        : `<!doctype html><html lang="en"><title>SPA</title><body data-issuer="${issuer}"><button>Sign in with Keyway</button><output></output><script type="module" src="/app.js"></script></body></html>`,
    )
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  assert.ok(address && typeof address === 'object')
  return {
    origin: `http://127.0.0.1:${address.port}`,
    trust(url: string) {
      issuer = url
    },
  }
}

test('a single-page app on another origin signs a person in with PKCE, in a real browser', async t => {
  const browser = await openBrowser(t)
  const axe = browser && (await axeSource(t))
  if (!browser || !axe) return
  const [web, app] = [await startWeb(t), await serveApp(t)]
  app.trust(web.url)
  await web.server.services.apps.register({
    id: 'spa',
    name: 'Single Page',
    isPublic: true,
    redirectUris: [`${app.origin}/`],
  })
  const { page } = await newPerson(browser)
  await page.goto(`${app.origin}/`)
  await page.getByRole('button', { name: 'Sign in with Keyway' }).click()
  await page.waitForURL('**/sign-in')
  await page.getByText('to continue to Single Page').waitFor()
  await page.getByLabel('E-mail address').fill('spa@example.com')
  await page.getByRole('button', { name: 'Send me a link' }).click()
  await page.waitForURL('**/check-mail')
  const [mail] = await web.mails('spa@example.com')
  await typeCode(page, mail!.code!)
  await page.waitForURL('**/oauth/consent?**')
  await page.evaluate(axe)
  const violations = await page.evaluate('axe.run().then(({ violations }) => violations.map(({ id }) => id))')
  assert.deepEqual(violations, [])
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await page.getByText('Hello spa@example.com').waitFor()

  // The person is signed in and has consented, so the next sign-in asks nothing.
  await page.goto(`${app.origin}/`)
  await page.getByRole('button', { name: 'Sign in with Keyway' }).click()
  await page.getByText('Hello spa@example.com').waitFor()
})

test('the consent page works without scripts, and a person who refuses is sent back', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const [web, app] = [await startWeb(t), await serveApp(t)]
  app.trust(web.url)
  await web.server.services.apps.register({
    id: 'spa',
    name: 'Single Page',
    redirectUris: [`${app.origin}/`],
  })
  const { page } = await newPerson(browser, { javaScriptEnabled: false })
  const query = new URLSearchParams({
    client_id: 'spa',
    redirect_uri: `${app.origin}/`,
    response_type: 'code',
    scope: 'openid',
    nonce: 'n',
    state: 's',
    login_hint: 'spa@example.com',
  })
  await page.goto(`${web.url}/oauth/authorize?${query}`)
  await page.getByRole('button', { name: 'Send me a link' }).click()
  await page.waitForURL('**/check-mail')
  const [mail] = await web.mails('spa@example.com')
  await page.goto(mail!.link!)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL('**/oauth/consent?**')
  await page.getByRole('button', { name: 'Do not allow' }).click()
  await page.waitForURL(url => url.origin === app.origin)
  const { searchParams } = new URL(page.url())
  assert.deepEqual(
    [searchParams.get('error'), searchParams.get('state'), searchParams.get('iss')],
    ['access_denied', 's', web.url],
  )
})
