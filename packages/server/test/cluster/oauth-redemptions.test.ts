import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { authorizePath, CALLBACK, codeOf, newVerifier } from '../support/authorize.ts'
import { postgresMissing } from '../support/engines.ts'
import { freePort } from '../support/free-port.ts'
import { basicAuthorization } from '../support/http.ts'
import { createPrintedLinks, freshPostgres, type PrintedLinks, startNode } from '../support/nodes.ts'
import { createClient } from '../support/page-client.ts'
import { startPair } from './races.ts'

const DEVICE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code'

describe('POST /oauth/token on two nodes', { skip: postgresMissing() }, () => {
  test('an authorization code that is presented twenty times at once is redeemed once', async t => {
    const { redemption, raceAsShop } = await openNodesWithApp(t)
    const tokens = await raceAsShop(await redemption())
    assert.ok(tokens.access_token && tokens.id_token && tokens.refresh_token)
  })

  test('a refresh token that is presented twenty times at once is redeemed once, and the successor ends', async t => {
    const { origins, headers, redemption, raceAsShop } = await openNodesWithApp(t)
    const firstTokens = await requestToken(origins[0], await redemption(), headers)
    assert.equal(firstTokens.status, 200)
    const refreshOf = (refresh_token: string) => ({ grant_type: 'refresh_token', refresh_token })
    const successor = await raceAsShop(refreshOf(firstTokens.body.refresh_token))
    const repeatedRefresh = await requestToken(origins[0], refreshOf(successor.refresh_token), headers)
    assert.deepEqual([repeatedRefresh.status, repeatedRefresh.body.error], [400, 'invalid_grant'])
  })

  test('a device code that is presented twenty times at once is redeemed once', async t => {
    const { origins, browser } = await openNodesWithApp(t)
    const requestAnswer = await postForm(origins[0], '/oauth/device', { client_id: 'keyway-cli' })
    const { device_code, verification_uri_complete } = requestAnswer.body
    const { pathname, search } = new URL(verification_uri_complete)
    const page = await (await browser.get(pathname + search)).text()
    const field = (name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(page)![1]!
    const decision = { decision: 'approve', compared: 'yes' }
    const fields = { form_token: field('form_token'), proof: field('proof'), ...decision }
    assert.equal((await browser.post('/device/decision', fields)).status, 200)
    await raceTokens(origins, { grant_type: DEVICE_GRANT_TYPE, client_id: 'keyway-cli', device_code })
  })
})

/** Two nodes, an app that needs no consent, and a browser in which a person is signed in. */
async function openNodesWithApp(t: TestContext) {
  const links = createPrintedLinks()
  const port = String(await freePort())
  // The pages are served under the public URL only.
  const sharedSettings = {
    KEYWAY_DATABASE_URL: await freshPostgres(t),
    KEYWAY_PUBLIC_URL: `http://127.0.0.1:${port}`,
  }
  const origins = await startPair(t, { ...sharedSettings, KEYWAY_PORT: port }, links)
  const shop = { id: 'shop', name: 'Shop', redirectUris: [CALLBACK], trusted: true }
  // This node may deliver the mails too, so it also gets `links`.
  const { services } = await startNode(t, sharedSettings, links)
  const { secret } = await services.apps.register(shop)
  const headers = basicAuthorization('shop', secret!)
  const browser = await signedInBrowser(origins[0], links)
  return {
    origins,
    headers,
    browser,
    /** The fields of a request that redeems a new code. */
    async redemption() {
      const { verifier, challenge } = newVerifier()
      const code = await codeOf(browser, authorizePath(challenge, { scope: 'openid offline_access' }))
      return { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: verifier }
    },
    raceAsShop: (fields: Record<string, string>) => raceTokens(origins, fields, headers),
  }
}

async function signedInBrowser(origin: string, links: PrintedLinks) {
  const email = 'ada@example.com'
  const browser = createClient(origin)
  const form_token = await browser.formToken('/sign-in')
  await browser.post('/sign-in', { form_token, email })
  const answer = await browser.post('/verify', { form_token, token: await links.next(email), email })
  assert.equal(answer.status, 303)
  return browser
}

/** Sends a request twenty times at once, to both nodes. Returns the one answer with tokens; all others are refusals. */
async function raceTokens(
  origins: readonly [string, string],
  fields: Record<string, string>,
  headers: Record<string, string> = {},
) {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => requestToken(origins[n % 2]!, fields, headers)),
  )
  const [granted, ...grantedMore] = answers.filter(({ status }) => status === 200)
  const refusals = answers.filter(({ status, body }) => status === 400 && body.error === 'invalid_grant')
  assert.deepEqual([grantedMore.length, refusals.length], [0, 19], JSON.stringify(answers))
  return granted!.body
}

function requestToken(origin: string, fields: Record<string, string>, headers: Record<string, string>) {
  return postForm(origin, '/oauth/token', fields, headers)
}

async function postForm(
  origin: string,
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
) {
  const answer = await fetch(origin + path, { method: 'POST', headers, body: new URLSearchParams(fields) })
  return { status: answer.status, body: await answer.json() }
}
