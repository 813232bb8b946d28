import type { Hono } from 'hono'
import { html } from 'hono/html'
import { streamSSE } from 'hono/streaming'
import { formToken, type Html, time } from './layout.ts'
import type { LiveAgent, PageContext, PageKit, PageVariables } from './pages.ts'
import { words } from './words.ts'

/** How often a stream looks again; a connection shows within this time on every node. */
const LOOK_AGAIN_MS = 1000
/** A stream ends by itself, and the browser opens a new one: a cookie that died meanwhile is then seen. */
const STREAM_LIFETIME_MS = 60_000

/** /agents: live connections, kept up to date by server-sent events. */
export function agentPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/agents', c => renderAgents(kit, c))
  app.get('/agents/events', c => (c.req.query('key') ? streamFirstConnection(kit, c) : streamList(kit, c)))
  app.post('/agents/:id/disconnect', async c => {
    const { user } = kit.requireSession(c)
    await kit.forms.read(c)
    const found = await kit.agents.disconnect(user.id, c.req.param('id'))
    c.set('notice', found ? words.agents.disconnected : words.agents.gone)
    return renderAgents(kit, c)
  })
  app.post('/agents/:id/test', async c => {
    const { user } = kit.requireSession(c)
    await kit.forms.read(c)
    const delivered = await kit.agents.sendTo(user.id, c.req.param('id'), {
      test: true,
      sent_at: new Date(kit.clock.now()).toISOString(),
    })
    c.set('notice', delivered ? words.agents.tested(delivered) : words.agents.gone)
    return renderAgents(kit, c)
  })
}

async function renderAgents(kit: PageKit, c: PageContext): Promise<Response> {
  const { user } = kit.requireSession(c)
  const agents = await kit.agents.connections(user.id)
  const body = html`<h1>${words.agents.title}</h1>
<p class="lead">${words.agents.lead}</p>
<div class="card" data-stream="/agents/events" aria-live="polite">${agentList(agents, kit.forms.token(c))}</div>`
  return kit.render(c, { title: words.agents.title, current: '/agents' }, body)
}

function agentList(agents: LiveAgent[], token: string): Html {
  const { columns } = words.agents
  if (agents.length === 0)
    return html`<p class="empty"><strong>${words.agents.empty}</strong>${words.agents.emptyLead}</p>`
  return html`<ul class="list">${agents.map(agent => {
    const name = agent.keyName ?? words.keys.unnamed
    return html`<li class="item" data-row="${agent.connectionId}">
<div><span class="live on">${name}</span><br><span class="quiet-text">${agent.client ?? ''}</span><br><code>${agent.connectionId.slice(-12)}</code></div>
<dl><dt>${columns.since}</dt><dd>${time(agent.connectedAt)}</dd><dt>${columns.from}</dt><dd class="mono">${agent.address}</dd></dl>
<div class="actions">
<form method="post" action="/agents/${agent.connectionId}/test">${formToken(token)}<button class="quiet" aria-label="${words.agents.test}: ${name}">${words.agents.test}</button></form>
<form method="post" action="/agents/${agent.connectionId}/disconnect">${formToken(token)}<button class="danger" aria-label="${words.agents.disconnect} ${name}">${words.agents.disconnect}</button></form>
</div></li>`
  })}</ul>`
}

function streamList(kit: PageKit, c: PageContext): Response {
  const { user } = kit.requireSession(c)
  const token = kit.forms.token(c)
  return streamWhile(kit, c, async (send, seen) => {
    const agents = await kit.agents.connections(user.id)
    const state = agents.map(agent => agent.connectionId).join()
    if (state !== seen) await send('list', String(await agentList(agents, token)))
    return state
  })
}

/** Tells the page of a new key when the first agent connects with it. */
function streamFirstConnection(kit: PageKit, c: PageContext): Response {
  const { user } = kit.requireSession(c)
  const keyId = c.req.query('key')
  return streamWhile(kit, c, async send => {
    const agents = await kit.agents.connections(user.id)
    if (agents.some(agent => agent.keyId === keyId)) await send('connected', 'yes')
    return ''
  })
}

/** Looks once a second for as long as the page listens and its session stands. */
export function streamWhile(
  kit: PageKit,
  c: PageContext,
  look: (send: (event: string, data: string) => Promise<void>, seen: string | null) => Promise<string>,
): Response {
  const cookie = kit.cookies.session(c)
  return streamSSE(c, async stream => {
    let seen: string | null = null
    const send = (event: string, data: string) => stream.writeSSE({ event, data: data.replaceAll('\r', '') })
    const rounds = STREAM_LIFETIME_MS / LOOK_AGAIN_MS
    for (let round = 0; round < rounds && !stream.aborted; round++) {
      if (cookie && !(await kit.sessions.authenticateCookie(cookie))) return send('ended', '')
      seen = await look(send, seen)
      await stream.sleep(LOOK_AGAIN_MS)
    }
  }) as Response
}
