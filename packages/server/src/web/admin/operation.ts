import { html } from 'hono/html'
import type { AuditEvent } from '../../audit/audit-event.ts'
import { parseId } from '../../ids.ts'
import { decodeCursor, encodeCursor } from '../../paging.ts'
import { describeClient } from '../client-name.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { empty, formToken, type Html, pageHead, time } from '../layout.ts'
import { notFound } from '../problem.ts'
import { texts } from '../texts.ts'
import { act, destinationOf, mayChange, renderAdmin, requireReader } from './acting.ts'
import { mailRow } from './mails.ts'
import { adminTexts } from './texts.ts'

const ROWS = 40
const LATEST = 5

/** /admin: what runs, what waits, and what was done last. */
export async function renderOverview(kit: PageKit, c: PageContext): Promise<Response> {
  requireReader(kit, c)
  const { overview, people } = adminTexts
  const page = { limit: LATEST, after: null }
  const [nodes, depth, failed, acts] = await Promise.all([
    kit.administration.nodes(),
    kit.store.outbox.depth(kit.clock.now()),
    kit.administration.mails('failed', page),
    kit.store.audit.list({}, page),
  ])
  const agents = nodes.reduce((sum, { connections }) => sum + connections, 0)
  const body = html`${pageHead(overview.title, overview.lead)}
<form method="get" action="/admin/users" class="inline spaced" role="search"><div class="field"><label for="query">${people.query}</label><input id="query" name="query" autocomplete="off" spellcheck="false"></div><button>${people.search}</button></form>
<div class="columns">
<section class="card"><h2>${adminTexts.nav.nodes}</h2><p>${overview.running(nodes.length, agents)}</p></section>
<section class="card"><h2>${adminTexts.nav.mails}</h2><p>${overview.mail(depth.queued)}</p></section>
</div>
<section class="card flush"><div class="card-head"><h2>${overview.failed}</h2></div>${failed.rows.length > 0 ? html`<ul class="list">${failed.rows.map(mail => mailRow(mail, null))}</ul>` : html`<p class="card-foot quiet">${adminTexts.none}</p>`}</section>
<section class="card flush"><div class="card-head"><h2>${overview.acts}</h2></div>${acts.rows.length > 0 ? html`<ul class="list">${acts.rows.map(auditRow)}</ul>` : html`<p class="card-foot quiet">${adminTexts.none}</p>`}</section>`
  return renderAdmin(kit, c, 'overview', { title: overview.title }, body)
}

/** /admin/agents: live connections of everybody. */
export async function renderAllAgents(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { agents } = adminTexts
  const page = { limit: ROWS, after: decodeCursor(c.req.query('cursor') ?? '') }
  const { rows, next } = await kit.administration.agents(page)
  const token = mayChange(kit, signedIn) ? kit.forms.token(c) : null
  const items = rows.map(row => {
    const name = row.keyName ?? texts.keys.unnamed
    return html`<li class="item"><div class="what"><span class="name live on">${name}</span><p>${row.client ? describeClient(row.client) : texts.agents.unknownClient} · <code>${row.address}</code></p></div><p class="when">${time(row.connectedAt)}<br><a href="/admin/users/${row.userId}">${agents.owner}<span class="unseen"> ${name}</span></a></p>${token ? html`<form class="buttons" method="post" action="/admin/agents/${row.connectionId}/disconnect">${formToken(token)}<button class="second small harm">${agents.disconnect}<span class="unseen"> ${name}</span></button></form>` : ''}</li>`
  })
  const body = html`${pageHead(agents.title, agents.lead)}
<section class="card flush">${items.length > 0 ? html`<ul class="list">${items}</ul>` : empty(agents.empty, agents.emptyLead)}${next ? html`<p class="card-foot"><a href="/admin/agents?cursor=${encodeCursor(next)}">${adminTexts.older}</a></p>` : ''}</section>`
  return renderAdmin(kit, c, 'agents', { title: agents.title }, body)
}

export function disconnectAgent(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/agents', async (_form, by) => {
    const id = parseId(c.req.param('id') ?? '')
    if (!id) throw notFound()
    await kit.administration.disconnect(id, by())
  })
}

/** /admin/nodes: the running processes. */
export async function renderNodes(kit: PageKit, c: PageContext): Promise<Response> {
  requireReader(kit, c)
  const { nodes } = adminTexts
  const { columns } = nodes
  const rows = await kit.administration.nodes()
  const body = html`${pageHead(nodes.title, nodes.lead)}
<section class="card flush"><table class="rows even"><thead><tr><th scope="col">${columns.id}</th><th scope="col">${columns.version}</th><th scope="col">${columns.started}</th><th scope="col" class="amount">${columns.agents}</th></tr></thead><tbody>${rows.map(node => html`<tr><th scope="row"><code>${node.id}</code></th><td data-label="${columns.version}">${node.version}</td><td data-label="${columns.started}">${time(node.startedAt)}</td><td data-label="${columns.agents}" class="amount">${node.connections}</td></tr>`)}</tbody></table></section>`
  return renderAdmin(kit, c, 'nodes', { title: nodes.title }, body)
}

/** /admin/audit: what administrators did. */
export async function renderAudit(kit: PageKit, c: PageContext): Promise<Response> {
  requireReader(kit, c)
  const { audit } = adminTexts
  const subject = parseId(c.req.query('subject') ?? '') ?? undefined
  const page = { limit: ROWS, after: decodeCursor(c.req.query('cursor') ?? '') }
  const { rows, next } = await kit.store.audit.list({ subject }, page)
  const more = next && new URLSearchParams({ ...(subject && { subject }), cursor: encodeCursor(next) })
  const body = html`${pageHead(audit.title, audit.lead)}
<section class="card flush">${rows.length > 0 ? html`<ul class="list">${rows.map(auditRow)}</ul>` : empty(audit.empty, audit.emptyLead)}${more ? html`<p class="card-foot"><a href="/admin/audit?${more.toString()}">${adminTexts.older}</a></p>` : ''}</section>`
  return renderAdmin(kit, c, 'audit', { title: audit.title }, body)
}

function auditRow({ type, at, actor, subject, before, after, reason, network }: AuditEvent): Html {
  const { audit } = adminTexts
  const states = [before, after].filter(state => state !== null).map(state => JSON.stringify(state))
  const who =
    actor.type === 'user' && actor.id !== null
      ? html`${audit.by.user} <a href="/admin/users/${actor.id}"><code>${actor.id.slice(0, 13)}…</code></a>`
      : audit.by[actor.type]
  const whom =
    subject.user_id === null
      ? ''
      : html` · <a href="/admin/users/${subject.user_id}"><code>${subject.user_id.slice(0, 13)}…</code></a>`
  return html`<li class="item"><div class="what"><span class="name">${audit.types[type]}</span><p>${who}${whom}${network ? html` · ${network}` : ''}</p>${states.length > 0 ? html`<p><code>${states.join(' → ')}</code></p>` : ''}${reason?.text ? html`<p>${reason.text}</p>` : ''}</div><p class="when">${time(at)}</p></li>`
}

/** /admin/confirm: a new sign-in by mail, which leads back. */
export function renderConfirm(kit: PageKit, c: PageContext): Response | Promise<Response> {
  const { user } = requireReader(kit, c)
  const { confirm } = adminTexts
  kit.cookies.rememberDestination(c, destinationOf(c.req.query('to')))
  const body = html`<section class="card"><h1>${confirm.title}</h1><p class="lead">${confirm.lead}</p>
<form method="post" action="/sign-in">${formToken(kit.forms.token(c))}<input type="hidden" name="email" value="${user.email}"><button>${confirm.submit}</button></form></section>`
  return kit.render(c, { title: confirm.title, current: '/admin' }, body)
}
