import assert from 'node:assert/strict'
import { parseEmailAddress } from '../../src/users/email-address.ts'
import type { Page } from './browser.ts'
import { createJourney } from './journey.ts'
import { createClient, signedInClient } from './page-client.ts'
import { until } from './patience.ts'
import type { WebServer } from './web.ts'

/** Operates the pages like a support person, and counts clicks and typed fields. */
export interface TaskDriver {
  page: Page
  clicks: number
  typed: number
  /** Clicks the first or the last of several elements with the name. */
  click(role: 'link' | 'button', name: string | RegExp, which?: 'first' | 'last'): Promise<void>
  type(label: string | RegExp, text: string): Promise<void>
  /** Types the reason into the form with this button. */
  typeReason(reason: string, button: string): Promise<void>
  /** Takes a screenshot of the page as it is now, if `playTask` was given `capture`. */
  screenshot(name: string): Promise<void>
}

export interface Task {
  title: string
  /**
   * Creates the situation in which a customer calls. Returns the steps of the task, which begin on the overview, and
   * the check of their result.
   */
  prepare(world: World): Promise<{ play(driver: TaskDriver): Promise<void>; check(): Promise<void> }>
}

export type World = ReturnType<typeof createWorld>

export function createWorld(web: WebServer) {
  const { services } = web.server
  const { store } = services.storage
  const caller = { address: '198.51.100.7', network: '198.51.100.7', client: 'Robot/1.0' }
  const idOf = async (email: string) => (await store.users.findByEmail(parseEmailAddress(email)!))!.id
  return {
    web,
    services,
    store,
    /** Signs a customer up through the pages. */
    async customer(email: string) {
      const client = await signedInClient(web, email)
      return { email, client, id: await idOf(email) }
    },
    createKey: (userId: string, name: string) =>
      services.apiKeys.create(
        userId,
        { appId: 'service-sdk', allowedNetworks: [], scopes: null, name, expiresAt: null },
        caller,
      ),
  }
}

/** Looks a person up by address, with which most of the tasks begin. */
async function openPerson({ type, click }: TaskDriver, email: string): Promise<void> {
  await type('Search', email)
  await click('button', 'Search')
  await click('link', email)
}

export const SUPPORT_TASKS: readonly Task[] = [
  {
    title: 'somebody gets no mail',
    async prepare({ customer, services, store }) {
      const { email } = await customer('nomail@example.com')
      await services.suppressions.record({ addresses: [email], reason: 'bounce' }, 'resend')
      return {
        async play(driver) {
          await openPerson(driver, email)
          await driver.screenshot('person')
          await driver.click('button', 'Allow mail again')
        },
        check: async () =>
          assert.equal(await store.suppressions.find(parseEmailAddress(email)!, services.clock.now()), null),
      }
    },
  },
  {
    title: 'a key leaked',
    async prepare({ customer, createKey, services }) {
      const { id } = await customer('leak@example.com')
      const { key, apiKey } = await createKey(id, 'build server')
      return {
        async play({ click, type, screenshot }) {
          await click('link', 'Keys')
          await type(/Beginning of a key/, key.slice(0, 12))
          await click('button', 'Search')
          await click('link', 'build server')
          await type(/Reason/, 'found in a public repository')
          await screenshot('key')
          await click('button', 'Revoke the key')
        },
        check: async () => assert.notEqual((await services.apiKeys.get(id, apiKey.id)).revokedAt, null),
      }
    },
  },
  {
    title: 'a wrong charge',
    async prepare({ customer, store }) {
      const { email, id } = await customer('charged@example.com')
      return {
        async play(driver) {
          await openPerson(driver, email)
          await driver.click('link', 'Ledger')
          await driver.screenshot('ledger')
          await driver.type('Amount in dollars', '0.50')
          await driver.type('Note in the ledger of the person', 'Refund of a double charge')
          await driver.click('button', 'Add credit')
        },
        check: async () => assert.equal(await store.billing.balance(id), 2_500_000),
      }
    },
  },
  {
    title: 'a colleague leaves',
    async prepare({ customer, createKey, store }) {
      const { email, id } = await customer('leaver@example.com')
      await createKey(id, 'laptop')
      return {
        async play(driver) {
          await openPerson(driver, email)
          await driver.typeReason('left the company', 'Suspend the account')
          await driver.screenshot('person')
          await driver.click('button', 'Suspend the account')
        },
        check: async () => assert.equal((await store.users.find(id))!.status, 'suspended'),
      }
    },
  },
  {
    title: 'a suspicious sign-in',
    async prepare({ customer, web, services }) {
      const { email, id } = await customer('hijacked@example.com')
      await signedInClient(web, email)
      return {
        async play(driver) {
          await openPerson(driver, email)
          await driver.screenshot('events')
          await driver.click('button', 'End all sessions')
        },
        check: async () =>
          assert.equal((await services.sessions.list(id, { limit: 10, after: null })).rows.length, 0),
      }
    },
  },
  {
    title: 'the secret of an app leaked',
    async prepare({ services }) {
      const { secret } = await services.apps.register({ id: 'bakery', name: 'The bakery' })
      return {
        async play({ page, click, type, screenshot }) {
          await click('link', 'Apps')
          await click('link', 'The bakery')
          await click('link', 'New secret')
          await type(/Reason/, 'the other one leaked')
          await click('button', 'Create the secret')
          await page.locator('#client-secret').waitFor()
          await screenshot('secret')
          await click('link', 'To the app')
          await screenshot('app')
          // The list begins with the newest secret.
          await click('link', /^Remove [0-9a-f-]{36}$/, 'last')
          await type(/Reason/, 'leaked')
          await click('button', 'Remove the secret')
        },
        check: async () => {
          assert.equal(await services.apps.authenticate('bakery', secret!), null)
          assert.equal((await services.apps.secrets('bakery')).length, 1)
        },
      }
    },
  },
  {
    title: 'somebody is locked out by limits',
    async prepare({ customer, web }) {
      const { email } = await customer('locked@example.com')
      // A new browser, so that the separate limits of a recognised one do not apply.
      const requestLink = async () => {
        const strangersClient = createClient(web.url)
        const form_token = await strangersClient.formToken('/sign-in')
        return (await strangersClient.post('/sign-in', { form_token, email })).status
      }
      await until('the address is locked out', async () => ((await requestLink()) === 429 ? true : undefined))
      return {
        async play(driver) {
          await openPerson(driver, email)
          await driver.click('button', 'Clear sign-in limits')
          await driver.screenshot('cleared')
        },
        check: async () => assert.equal(await requestLink(), 303),
      }
    },
  },
  {
    title: 'who changed what',
    async prepare({ customer, services }) {
      const { email, id } = await customer('changed@example.com')
      await services.users.setRole(id, 'support', {
        actor: { type: 'command', id: null, key_id: null, session_id: null },
        caller: null,
        requestId: null,
        reason: 'helps out in November',
      })
      let auditPage = ''
      return {
        async play(driver) {
          await openPerson(driver, email)
          // This is the tab on the person's page, not the section of all audit events.
          await driver.click('link', 'Audit of this account')
          auditPage = await driver.page.content()
          await driver.screenshot('audit')
        },
        check: async () => assert.match(auditPage, /helps out in November/),
      }
    },
  },
  {
    title: 'an agent misbehaves',
    async prepare({ customer, createKey, services, store, web }) {
      const { id } = await customer('noisy@example.com')
      const { key, apiKey } = await createKey(id, 'noisy robot')
      const journey = createJourney(web.url)
      const socket = await journey.connect(await journey.exchange(key))
      const closed = new Promise(resolve => socket.once('close', resolve))
      await until('it is listed', async () => (await store.presence.listOf(id, 0))[0])
      return {
        async play({ click, type, screenshot }) {
          await click('link', 'Agents')
          await screenshot('agents')
          await click('link', 'noisy robot')
          await type('Operator request limits', '10/minute')
          await click('button', 'Set the limits')
          await click('link', 'Agents')
          await click('button', 'Disconnect noisy robot')
        },
        check: async () => {
          await closed
          const { requests } = (await services.apiKeys.get(id, apiKey.id)).operatorLimits
          assert.deepEqual(requests, [{ limit: 10, per: 'minute' }])
        },
      }
    },
  },
  {
    title: 'a customer wants the account deleted',
    async prepare({ customer, createKey, store }) {
      const { email, id } = await customer('goodbye@example.com')
      await createKey(id, 'old robot')
      return {
        async play(driver) {
          await openPerson(driver, email)
          await driver.type(`Type ${email} to confirm`, email)
          await driver.typeReason('asked for by mail', 'Delete the account')
          await driver.screenshot('person')
          await driver.click('button', 'Delete the account')
        },
        check: async () => assert.equal((await store.users.find(id))!.status, 'deleted'),
      }
    },
  },
]

export interface TaskResult {
  task: string
  clicks: number
  typed: number
  seconds: number
}

/**
 * Plays a task from the administration's overview on, and checks its result. Clicks only links and buttons in the
 * content of pages, not in their navigation. The returned time does not include screenshots.
 */
export async function playTask(
  world: World,
  page: Page,
  task: Task,
  capture: (page: Page, name: string) => Promise<void> = async () => {},
): Promise<TaskResult> {
  const { play, check } = await task.prepare(world)
  await page.goto(`${world.web.url}/admin`)
  let screenshotMs = 0
  const main = page.locator('main')
  const driver: TaskDriver = {
    page,
    clicks: 0,
    typed: 0,
    async click(role, name, which = 'first') {
      driver.clicks++
      const matchingElements = main.getByRole(role, { name, exact: typeof name === 'string' })
      await (which === 'first' ? matchingElements.first() : matchingElements.last()).click()
      await page.waitForLoadState('load')
    },
    async type(label, text) {
      driver.typed++
      await page
        .getByLabel(label, { exact: typeof label === 'string' })
        .last()
        .fill(text)
    },
    async typeReason(reason, button) {
      driver.typed++
      await page.locator(`form:has(button:text-is("${button}")) [name="reason"]`).fill(reason)
    },
    async screenshot(name) {
      const startedAt = performance.now()
      await capture(page, `${task.title.replaceAll(' ', '-')}-${name}`)
      screenshotMs += performance.now() - startedAt
    },
  }
  const startedAt = performance.now()
  await play(driver)
  const seconds = (performance.now() - startedAt - screenshotMs) / 1000
  await driver.screenshot('done')
  await check()
  return { task: task.title, clicks: driver.clicks, typed: driver.typed, seconds }
}
