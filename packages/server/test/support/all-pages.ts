import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { toScopes } from '../../src/api-keys/api-key.ts'
import { BY_COMMAND_LINE } from '../../src/audit/audit.ts'
import { LANGUAGES, type Language } from '../../src/languages/languages.ts'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import { authorizePath, newVerifier, registerShop } from './authorize.ts'
import type { Browser, Page } from './browser.ts'
import { createJourney } from './journey.ts'
import { SAME_ORIGIN } from './page-client.ts'
import { caller } from './services.ts'
import { askForLink, newPerson, signIn, startWeb, type WebServer } from './web.ts'

const ADA = 'ada@example.com'

export interface OpenPages {
  page: Page
  urls: string[]
  /** Sets the language of the following pages. */
  setLanguage(language: Language): Promise<void>
}

/** Pseudo-path of the page that answers the form of a new key: the only page that shows a whole key. */
export const NEW_KEY = '/keys/new#created'

/** Opens a page; for `NEW_KEY` it submits the form on /keys/new. */
export async function visit(page: Page, url: string): Promise<void> {
  await page.goto(url)
  if (!url.endsWith(NEW_KEY)) return
  await page.locator('form.create button:not([type])').click()
  await page.locator('#new-key').waitFor()
}

/**
 * The HTML of a page as the server sends it, before a browser's parser corrects it. For `NEW_KEY` it submits the form
 * on /keys/new, which creates a key.
 */
export async function sourceOf(url: string, headers: Record<string, string>): Promise<string> {
  const source = await (await fetch(url, { headers })).text()
  if (!url.endsWith(NEW_KEY)) return source
  const hiddenFields = [...source.matchAll(/<input type="hidden" name="(\w+)" value="([^"]+)">/g)]
  const fields = hiddenFields.map(([, name, value]) => [name!, value!])
  const body = new URLSearchParams([...fields, ['access', 'all'], ['expiry', '90']])
  const request = { method: 'POST', body, headers: { ...headers, ...SAME_ORIGIN } }
  const answer = await fetch(new URL('/keys', url), request)
  assert.equal(answer.status, 201)
  return answer.text()
}

/** Documents of every kind; their content is in English. */
const DOCUMENTS = [
  '/docs',
  '/docs/agents',
  '/docs/api/api-keys',
  '/docs/call/createApiKey',
  '/docs/call/updateApiKey',
  '/docs/errors',
  '/docs/search?q=key',
  '/errors/rate_limited',
]

/**
 * Signs in an administrator with data for the pages (active, rotated and revoked keys, a connected agent, mail), and
 * returns the URLs of all pages that a signed-in administrator can open.
 */
export async function openPages(t: TestContext, browser: Browser): Promise<OpenPages> {
  const web = await startWeb(t, { KEYWAY_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' })
  const { page } = await newPerson(browser)
  await signIn(page, web, ADA)
  const { services } = web.server
  const user = (await services.storage.store.users.findByEmail(parseEmailAddress(ADA)!))!
  await services.users.setRole(user.id, 'admin', BY_COMMAND_LINE)
  await services.suppressions.record({ addresses: [ADA], reason: 'bounce' }, 'resend')
  const newKey = { appId: 'service-sdk', allowedNetworks: [], scopes: null, name: 'robot', expiresAt: null }
  const activeKey = await services.apiKeys.create(user.id, newKey, caller())
  const revokedKey = await services.apiKeys.create(
    user.id,
    { ...newKey, name: null, scopes: toScopes(['agents:read']) },
    caller(),
  )
  await services.apiKeys.rotate(user.id, activeKey.apiKey.id, 3600, caller())
  await services.apiKeys.revoke(user.id, revokedKey.apiKey.id, caller())
  const journey = createJourney(web.url)
  const socket = await journey.connect(await journey.exchange(activeKey.key))
  t.after(() => socket.terminate())
  const webhooks = await services.webhooks()
  const endpoint = { url: `http://127.0.0.1:1/${'long'.repeat(40)}`, events: [] }
  const { webhook } = await webhooks.create(endpoint, BY_COMMAND_LINE)
  await services.users.rename(user.id, 'Ada')
  const { id: mailId } = (await web.mails(ADA))[0]!
  const key = `/keys/${activeKey.apiKey.id}`
  await registerShop(web)
  const consentPath = authorizePath(newVerifier().challenge)
  const approvalPath = await devicePath(web)
  const paths = [
    ...[
      '/keys',
      '/keys/new',
      NEW_KEY,
      key,
      `${key}/revoke`,
      `${key}/live`,
      '/keys?status=expired',
      '/keys?query=robot&sort=name',
      `/keys/revoke?id=${activeKey.apiKey.id}`,
      '/account/events',
      '/account/events?group=apps',
      '/agents',
      '/sessions',
      '/account',
      '/account/balance',
      '/account/usage',
      '/account/apps',
      '/account/delete',
      '/device',
      approvalPath,
      consentPath,
      '/language',
      '/account/email?token=x',
    ],
    ...[
      '',
      '?period=quarter',
      '/users',
      '/users?query=nobody@',
      `/users/${user.id}`,
      `/users/${user.id}?show=ledger`,
      `/users/${user.id}/revoke-keys`,
      '/keys',
      `/keys/${activeKey.apiKey.id}`,
      '/keys?filter=unused',
      '/agents',
    ]
      .concat([
        '/apps',
        '/apps/console',
        '/apps?kind=self',
        '/register-app',
        '/webhooks',
        `/webhooks/${webhook.id}`,
        '/invitations',
        '/policies',
        '/mails',
        '/mails?state=sent',
        '/nodes',
        '/nodes?check=all',
        '/audit',
        '/confirm',
      ])
      .map(path => `/admin${path}`),
    ...DOCUMENTS,
    ...['/docs/operations', '/docs/call/listUsers'],
    ...['/inbox', `/inbox/${mailId}`, `/inbox/${mailId}?view=text`, '/nowhere'],
  ]
  const setLanguage = async (language: Language) => {
    await services.users.setLocale(user.id, LANGUAGES[language].tag)
  }
  return { page, urls: paths.map(path => web.url + path), setLanguage }
}

/** The path of the verification link that a device shows, valid for ten minutes. */
export async function devicePath({ server }: WebServer): Promise<string> {
  const request = {
    clientId: 'keyway-cli',
    scopes: ['keys:create', 'agent:connect'],
    resource: null,
    deviceName: 'workshop',
  }
  const { userCode, ticket } = await server.services.deviceAuthorizations.request(request, caller())
  return `/device?${new URLSearchParams({ user_code: userCode, ticket })}`
}

/**
 * Returns the URLs of the pages that people see before they sign in, and a page to open them in. Its browser requested a
 * link, which `/check-mail` requires.
 */
export async function openFirstPages(t: TestContext, browser: Browser): Promise<OpenPages> {
  const web = await startWeb(t)
  const { page } = await newPerson(browser)
  const { link } = await askForLink(page, web, 'bob@example.com')
  const { page: stranger } = await newPerson(browser)
  await stranger.goto(`${web.url}/sign-in`)
  await askForLink(stranger, web, 'carol@example.com')
  const paths = [
    ...['/sign-in', '/check-mail', '/inbox', link!.slice(web.url.length), '/verify?token=x&email=y'],
    ...DOCUMENTS.slice(0, 1),
  ]
  const setLanguage = (value: Language) =>
    stranger.context().addCookies([{ name: 'keyway_language', value, url: web.url }])
  return { page: stranger, urls: paths.map(path => web.url + path), setLanguage }
}
