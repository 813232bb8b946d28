import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Hono } from 'hono'
import { createLog } from '../../src/log.ts'
import { createStreams, MAX_STREAMS_PER_OWNER, type Send } from '../../src/web/streams.ts'
import { sharedBrowser } from '../support/browser.ts'
import { createJourney } from '../support/journey.ts'
import { signedInClient } from '../support/page-client.ts'
import { askForLink, newPerson, signIn, startWeb } from '../support/web.ts'

const openBrowser = sharedBrowser()

async function openStream(url: string) {
  const abortController = new AbortController()
  const answer = await fetch(url, {
    signal: abortController.signal,
    headers: { accept: 'text/event-stream' },
  })
  return { answer, gone: abortController }
}

test('the inbox shows new mail and the agents page new connections without a reload', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page, context } = await newPerson(browser)
  const inbox = await context.newPage()
  await inbox.goto(`${web.url}/inbox`)
  await inbox.getByText('No mail yet').waitFor()
  await signIn(page, web, 'ada@example.com')
  await inbox.getByRole('link', { name: /^Create your Keyway account/ }).waitFor()

  await page.getByLabel('Name').fill('robot')
  await page.getByRole('button', { name: 'Create key' }).click()
  const key = (await page.locator('#new-key').textContent())!
  await page.getByRole('link', { name: 'I have saved the key' }).click()
  await page.goto(`${web.url}/agents`)
  await page.getByText('No agent is connected').waitFor()
  assert.equal(await page.getByRole('link', { name: 'All keys' }).getAttribute('href'), '/keys')
  const journey = createJourney(web.url)
  const agent = await journey.connect(await journey.exchange(key))
  await page.getByRole('link', { name: 'robot', exact: true }).waitFor()
  const announcement = page.locator('[data-announce]').filter({ hasText: /^One agent is connected now\.$/ })
  await announcement.waitFor({ state: 'attached' })
  await page.getByRole('link', { name: 'Disconnect robot' }).click()
  await page.getByText('it connects again by itself').waitFor()
  assert.equal(await page.getByRole('link', { name: 'Revoke its key' }).count(), 1)
  await page.getByRole('button', { name: 'Disconnect' }).click()
  await page.getByText('Disconnected.').waitFor()
  await page.getByText('No agent is connected').waitFor()
  agent.terminate()
})

test('the link of a mail in the inbox opens a new tab and signs in there', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page, context } = await newPerson(browser)
  await askForLink(page, web, 'ada@example.com')
  await page.goto(`${web.url}/inbox`)
  await page.getByRole('link', { name: /^Create your Keyway account/ }).click()
  const tabOpened = context.waitForEvent('page')
  await page.frameLocator('iframe.mail').getByRole('link', { name: 'Create account' }).click()
  await (await tabOpened).waitForURL(/\/keys/)
})

test('a page whose session was ended elsewhere redirects to the sign-in by itself', async t => {
  const browser = await openBrowser(t)
  if (!browser) return
  const web = await startWeb(t)
  const { page, context } = await newPerson(browser)
  await signIn(page, web, 'ada@example.com')
  const session = (await context.cookies()).find(({ name }) => name === 'keyway_session')!
  await page.goto(`${web.url}/agents`)
  const { services } = web.server
  const cookieSession = (await services.sessions.authenticateCookie(session.value))!
  await services.sessions.end(cookieSession.user.id, cookieSession.session.id, {
    address: '127.0.0.1',
    network: '127.0.0.1',
    client: null,
  })
  await page.getByText('You were signed out because this session ended').waitFor()
})

test('streams are limited, are released when closed, and end at shutdown', async () => {
  const web = await startWeb(null)
  const url = `${web.url}/inbox/events`
  const streams = []
  for (let count = 0; count < MAX_STREAMS_PER_OWNER; count++) streams.push(await openStream(url))
  assert.equal((await openStream(url)).answer.status, 204)
  streams.pop()!.gone.abort()
  let replacement = await openStream(url)
  // Succeeds as soon as the server has noticed the disconnect.
  while (replacement.answer.status === 204) replacement = await openStream(url)

  const pendingEnds = Promise.all([...streams, replacement].map(({ answer }) => answer.text()))
  await web.close()
  await pendingEnds // a stream that was still open would have been aborted
})

test('the streams of one user are limited over all sessions, and an unauthenticated client holds none', async t => {
  const web = await startWeb(t)
  const clients = [await signedInClient(web), await signedInClient(web)]
  const abortController = new AbortController()
  t.after(() => abortController.abort())
  // The answers are kept: fetch cancels the body of an answer that was garbage-collected.
  const answers: Response[] = []
  for (let count = 0; count <= MAX_STREAMS_PER_OWNER; count++) {
    const cookie = `keyway_session=${clients[count % 2]!.jar.get('keyway_session')}`
    answers.push(
      await fetch(`${web.url}/agents/events`, { headers: { cookie }, signal: abortController.signal }),
    )
  }
  assert.deepEqual(
    answers.map(({ status }) => status),
    [...Array(MAX_STREAMS_PER_OWNER).fill(200), 204],
  )
  const strangersStream = await fetch(`${web.url}/agents/events`)
  assert.match(await strangersStream.text(), /^event: ended/)
})

test('with too many streams the oldest ends and a new one is served', async t => {
  const stopController = new AbortController()
  t.after(() => stopController.abort())
  const streams = createStreams({ stopping: stopController.signal, log: createLog('silent'), maxStreams: 2 })
  const check = async (send: Send) => {
    await send('x', 'y')
    return true
  }
  const app = new Hono()
  app.get('/:owner', c => streams.serve(c, c.req.param('owner'), check))
  const [first, second, third] = [await app.request('/a'), await app.request('/b'), await app.request('/c')]
  assert.match(await first.text(), /event: x/)
  stopController.abort()
  for (const answer of [second, third]) assert.match(await answer.text(), /event: x/)
})
