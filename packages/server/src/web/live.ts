import { setTimeout as wait } from 'node:timers/promises'
import type { Hono } from 'hono'
import { html } from 'hono/html'
import type { ApiKey } from '../api-keys/api-key.ts'
import { SECOND } from '../clock.ts'
import { parseId } from '../ids.ts'
import { texts } from '../languages/current.ts'
import { labelOf } from './key-list.ts'
import type { LiveAgent, PageContext, PageKit, PageVariables } from './kit.ts'
import { type Html, pageHead } from './layout.ts'
import { type LiveView, liveCard, liveState } from './live-card.ts'
import { notFound } from './problem.ts'
import { stateHash, streamToSignedIn } from './signed-in-stream.ts'

/** The `data` of the request that the page sends to an agent as a greeting. */
export const HELLO = { hello: 'from the Keyway pages' }
/** How long the page of a revoked key waits for its connections to be closed. */
const CLOSING_TIMEOUT_MS = 3 * SECOND
const CLOSING_POLL_MS = 50
/** Reload interval in seconds of the page of a key without connections, if no script runs. */
const REFRESH_SECONDS = 3

/** /keys/:id/live: shows the agents of a key as they connect, greets them, and revokes the key. */
export function livePages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/keys/:id/live', async c => renderLive(kit, c, await viewOf(kit, c)))
  app.get('/keys/:id/live/events', c => streamLive(kit, c))
  app.post('/keys/:id/live/hello', async c => {
    const { user } = kit.requireSession(c)
    const connectionId = parseId(kit.forms.read(c).get('connection') ?? '')
    const view = await viewOf(kit, c)
    const belongsToKey = view.agents.some(agent => agent.connectionId === connectionId)
    const greeting = connectionId && belongsToKey ? await kit.agents.ask(user.id, connectionId, HELLO) : null
    const greetedConnection = { connectionId: connectionId ?? '', greeting }
    return renderLive(kit, c, { ...(await viewOf(kit, c)), greetedConnection })
  })
  app.post('/keys/:id/live/end', async c => {
    const { user } = kit.requireSession(c)
    kit.forms.read(c)
    const { key, agents } = await viewOf(kit, c)
    const startedAt = kit.clock.now()
    await kit.apiKeys.revoke(user.id, key.id, kit.callerOf(c.req.raw, c.env))
    const isClosed = await waitForConnectionsToClose(kit, key)
    const afterMs = isClosed ? Math.max(1, Math.round(kit.clock.now() - startedAt)) : null
    const revocation = { connections: agents.length, afterMs }
    return renderLive(kit, c, { ...(await viewOf(kit, c)), revocation })
  })
}

/** The person's key that the path names, with its live connections. @throws KeywayError `not_found` */
export async function viewOf(kit: PageKit, c: PageContext, token = kit.forms.token(c)): Promise<LiveView> {
  const { user } = kit.requireSession(c)
  const id = parseId(c.req.param('id') ?? '')
  if (!id) throw notFound()
  const key = await kit.apiKeys.get(user.id, id)
  return { key, agents: await agentsOf(kit, key), now: kit.clock.now(), token }
}

async function agentsOf(kit: PageKit, key: ApiKey): Promise<LiveAgent[]> {
  return (await kit.agents.connections(key.userId)).filter(agent => agent.keyId === key.id)
}

/** Resolves with true once the key has no connections, with false after a timeout. */
async function waitForConnectionsToClose(kit: PageKit, key: ApiKey): Promise<boolean> {
  const deadline = kit.clock.now() + CLOSING_TIMEOUT_MS
  while ((await agentsOf(kit, key)).length > 0) {
    if (kit.clock.now() >= deadline) return false
    await wait(CLOSING_POLL_MS)
  }
  return true
}

function renderLive(kit: PageKit, c: PageContext, view: LiveView): Response | Promise<Response> {
  const { live } = texts
  const { key } = view
  const isWaiting = c.req.method === 'GET' && view.agents.length === 0
  const reloadLink = html`<noscript><p><a href="/keys/${key.id}/live">${live.lookAgain}</a></p></noscript>`
  const body = html`<p class="back"><a href="/keys/${key.id}">${live.back}</a></p>${pageHead(labelOf(key), live.lead)}
<section class="card">${streamedCard(view)}${reloadLink}</section>`
  const refreshSeconds = isWaiting ? REFRESH_SECONDS : null
  const options = {
    title: live.title({ name: labelOf(key) }),
    current: '/keys',
    formAt: `/keys/${key.id}/live`,
  }
  return kit.render(c, { ...options, refreshSeconds }, body)
}

/** The card with the live connections of a key, which script.js keeps up to date. */
export function streamedCard(view: LiveView): Html {
  const url = `/keys/${view.key.id}/live/events?seen=${stateHash(liveState(view))}`
  return html`<p class="unseen" role="status" data-announce></p><div class="live-card" id="live-card" data-stream="${url}" data-lost="${texts.live.reconnecting}">${liveCard(view)}</div>`
}

/** Sends the card whenever it has changed. */
function streamLive(kit: PageKit, c: PageContext): Response {
  const token = kit.forms.token(c)
  return streamToSignedIn(kit, c, async (send, shownHash) => {
    const view = await viewOf(kit, c, token)
    const hash = stateHash(liveState(view))
    if (hash !== shownHash) await send('list', String(await liveCard(view)), hash)
    return hash
  })
}
