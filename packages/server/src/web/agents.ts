import type { Hono } from 'hono'
import { html } from 'hono/html'
import { parseId } from '../ids.ts'
import type { LiveAgent, PageContext, PageKit, PageVariables } from './kit.ts'
import { empty, formToken, type Html, pageHead, time } from './layout.ts'
import { texts } from './texts.ts'

/** /agents: live connections, kept up to date by server-sent events. */
export function agentPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/agents', c => renderAgents(kit, c))
  app.get('/agents/events', c => streamAgents(kit, c))
  app.post('/agents/:id/disconnect', async c => {
    const { user } = kit.requireSession(c)
    kit.forms.read(c)
    const id = parseId(c.req.param('id'))
    const found = id && (await kit.agents.disconnect(user.id, id))
    return c.redirect(`/agents?done=${found ? 'disconnected' : 'gone'}`, 303)
  })
  app.post('/agents/:id/test', async c => {
    const { user } = kit.requireSession(c)
    kit.forms.read(c)
    const sentAt = new Date(kit.clock.now()).toISOString()
    const id = parseId(c.req.param('id'))
    const delivered = id && (await kit.agents.sendTo(user.id, id, { test: true, sent_at: sentAt }))
    return c.redirect(`/agents?done=${delivered ? 'tested' : 'gone'}`, 303)
  })
}

async function renderAgents(kit: PageKit, c: PageContext): Promise<Response> {
  const { user } = kit.requireSession(c)
  const agents = await kit.agents.connections(user.id)
  const body = html`${pageHead(texts.agents.title, texts.agents.lead)}
<p class="unseen" role="status" data-announce></p>
<section class="card flush" data-stream="/agents/events">${agentList(agents, kit.forms.token(c))}</section>`
  return kit.render(c, { title: texts.agents.title, current: '/agents' }, body)
}

function agentList(agents: readonly LiveAgent[], token: string): Html {
  if (agents.length === 0) return empty(texts.agents.empty, texts.agents.emptyLead)
  return html`<ul class="list">${agents.map(agent => agentRow(agent, token))}</ul>`
}

function agentRow(agent: LiveAgent, token: string): Html {
  const { agents, keys } = texts
  const name = agent.keyName ?? keys.unnamed
  return html`<li class="item" data-row="${agent.connectionId}">
<div class="what"><a class="name live on" href="/keys/${agent.keyId}">${name}</a><p>${agent.client ?? agents.unknownClient}</p></div>
<p class="when">${agents.since} ${time(agent.connectedAt)}<br><code>${agent.address}</code></p>
<div class="buttons">
<form method="post" action="/agents/${agent.connectionId}/test">${formToken(token)}<button class="second small">${agents.test}<span class="unseen"> ${agents.testTo} ${name}</span></button></form>
<form method="post" action="/agents/${agent.connectionId}/disconnect">${formToken(token)}<button class="second small harm">${agents.disconnect}<span class="unseen"> ${name}</span></button></form>
</div></li>`
}

/** Sends the whole list when it changed, or, for the page of a new key, its first connection. */
function streamAgents(kit: PageKit, c: PageContext): Response {
  const signedIn = c.get('signedIn')
  if (!signedIn) return c.body('event: ended\ndata: yes\n\n', 200, { 'Content-Type': 'text/event-stream' })
  const cookie = kit.cookies.session(c) ?? ''
  const keyId = c.req.query('key')
  const token = kit.forms.token(c)
  let seen: string | null = null
  return kit.streams.serve(c, signedIn.user.id, async send => {
    if (!(await kit.sessions.authenticateCookie(cookie))) {
      await send('ended', 'yes')
      return false
    }
    const agents = await kit.agents.connections(signedIn.user.id)
    if (keyId !== undefined) {
      const isLive = agents.some(agent => agent.keyId === keyId)
      if (isLive) await send('connected', 'yes')
      return !isLive
    }
    const state = agents.map(agent => agent.connectionId).join()
    if (state !== seen) await send('list', String(await agentList(agents, token)))
    if (seen !== null && state !== seen) await send('announce', texts.agents.count(agents.length))
    seen = state
    return true
  })
}
