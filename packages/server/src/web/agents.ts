import type { Hono } from 'hono'
import { html } from 'hono/html'
import type { Instant } from '../clock.ts'
import { parseId } from '../ids.ts'
import { texts } from '../languages/current.ts'
import { programOf } from './client-name.ts'
import type { LiveAgent, PageContext, PageKit, PageVariables } from './kit.ts'
import { ago, emptyList, formToken, type Html, pageHead } from './layout.ts'
import { HELLO } from './live.ts'
import { answerOf, type GreetingResult } from './live-card.ts'
import { stateHash, streamToSignedIn } from './signed-in-stream.ts'

/** Number of characters of a connection's id that are shown: its end, which is random. */
const SHOWN_ID_CHARACTERS = 6

type GreetedConnection = { connectionId: string; greeting: GreetingResult }

/** /agents: live connections, kept up to date by server-sent events. */
export function agentPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/agents', c => renderAgents(kit, c))
  app.get('/agents/events', c => streamAgents(kit, c))
  app.get('/agents/:id/disconnect', c => renderDisconnect(kit, c))
  app.post('/agents/:id/disconnect', async c => {
    const { user } = kit.requireSession(c)
    kit.forms.read(c)
    const id = parseId(c.req.param('id'))
    const isDisconnected = id && (await kit.agents.disconnect(user.id, id))
    return c.redirect(`/agents?done=${isDisconnected ? 'disconnected' : 'gone'}`, 303)
  })
  app.post('/agents/:id/test', async c => {
    const { user } = kit.requireSession(c)
    kit.forms.read(c)
    const connectionId = parseId(c.req.param('id'))
    const greeting = connectionId && (await kit.agents.ask(user.id, connectionId, HELLO))
    if (!greeting) return c.redirect('/agents?done=gone', 303)
    return renderAgents(kit, c, { connectionId, greeting })
  })
}

/** Asks for confirmation, and says that an agent reconnects as long as its key is active. */
async function renderDisconnect(kit: PageKit, c: PageContext): Promise<Response> {
  const { agents, keys } = texts
  const id = parseId(c.req.param('id') ?? '')
  const agent = (await connectionsOf(kit, c)).find(({ connectionId }) => connectionId === id)
  if (!agent) return c.redirect('/agents?done=gone', 303)
  const title = agents.disconnectTitle({ name: agent.keyName ?? keys.unnamed })
  const body = html`<section class="card ask"><h1>${title}</h1>
<p class="quiet"><code>${agent.address}</code> · <bdi>${programOf(agent.client)}</bdi></p>
<p>${agents.comesBack}</p>
<form class="buttons" method="post" action="/agents/${agent.connectionId}/disconnect">${formToken(kit.forms.token(c))}<button>${agents.disconnectNow}</button><a class="button second harm" href="/keys/${agent.keyId}/revoke">${agents.revokeKey}</a><a class="button second" href="/agents">${agents.keep}</a></form></section>`
  return kit.render(c, { title, current: '/agents' }, body)
}

async function renderAgents(kit: PageKit, c: PageContext, greeted?: GreetedConnection): Promise<Response> {
  const agents = await connectionsOf(kit, c)
  const eventsUrl = `/agents/events?seen=${stateHash(listState(agents))}`
  const body = html`${pageHead(texts.agents.title, texts.agents.lead)}
<p class="unseen" role="status" data-announce></p>
<section class="card flush" id="agents" data-stream="${eventsUrl}" data-lost="${texts.live.reconnecting}">${await agentList(kit, c, agents, kit.forms.token(c), greeted)}</section>`
  return kit.render(c, { title: texts.agents.title, current: '/agents', formAt: '/agents' }, body)
}

function connectionsOf(kit: PageKit, c: PageContext): Promise<LiveAgent[]> {
  return kit.agents.connections(kit.requireSession(c).user.id)
}

/** A text that changes whenever the list does: the connection ids and the names of their keys. */
function listState(agents: readonly LiveAgent[]): string {
  return JSON.stringify(agents.map(({ connectionId, keyName }) => [connectionId, keyName]))
}

async function agentList(
  kit: PageKit,
  c: PageContext,
  agents: readonly LiveAgent[],
  token: string,
  greeted?: GreetedConnection,
): Promise<Html> {
  if (agents.length === 0) return emptyAgentList(kit, c)
  const now = kit.clock.now()
  return html`<ul class="list">${agents.map(agent => agentRow(agent, token, now, greeted))}</ul>`
}

/** What is shown instead of an empty list: a link to the person's keys, or to the form that creates one. */
async function emptyAgentList(kit: PageKit, c: PageContext): Promise<Html> {
  const { agents, keys, live } = texts
  const { user } = kit.requireSession(c)
  const hasKeys = (await kit.store.apiKeys.countActive(user.id, kit.clock.now(), 1)) > 0
  const nextStep = hasKeys
    ? html`<a class="button" href="/keys">${live.allKeys}</a>`
    : html`<a class="button" href="/keys/new">${keys.create}</a>`
  const actions = html`<p class="buttons">${nextStep}<a class="button second" href="/docs/quickstart">${agents.howTo}</a></p>`
  return emptyList(agents.empty, hasKeys ? agents.emptyLeadWithKeys : agents.emptyLead, actions)
}

function agentRow(agent: LiveAgent, token: string, now: Instant, greeted?: GreetedConnection): Html {
  const { agents, keys, live } = texts
  const name = agent.keyName ?? keys.unnamed
  const { connectionId } = agent
  const greeting = greeted?.connectionId === connectionId ? greeted.greeting : undefined
  return html`<li class="item" data-row="${connectionId}">
<div class="what"><a class="name live on" href="/keys/${agent.keyId}"><bdi>${name}</bdi></a><p><bdi>${programOf(agent.client)}</bdi> · ${live.connection} <code title="${connectionId}">…${connectionId.slice(-SHOWN_ID_CHARACTERS)}</code></p>${greeting === undefined ? '' : answerOf(greeting)}</div>
<p class="when">${agents.since} ${ago(agent.connectedAt, now)}<br>${agents.host} <code>${agent.address}</code></p>
<div class="buttons">
<form method="post" action="/agents/${connectionId}/test" data-in-place="agents">${formToken(token)}<button class="second small">${agents.test}<span class="unseen"> ${agents.testTo} ${name}</span></button></form>
<a class="button second small harm" href="/agents/${connectionId}/disconnect">${agents.disconnect}<span class="unseen"> ${name}</span></a>
</div></li>`
}

/** Sends the whole list whenever it has changed. */
function streamAgents(kit: PageKit, c: PageContext): Response {
  const token = kit.forms.token(c)
  return streamToSignedIn(kit, c, async (send, shownHash) => {
    const agents = await connectionsOf(kit, c)
    const hash = stateHash(listState(agents))
    if (hash === shownHash) return hash
    await send('list', String(await agentList(kit, c, agents, token)), hash)
    await send('announce', texts.agents.count({ count: agents.length }))
    return hash
  })
}
