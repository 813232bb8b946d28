import { html } from 'hono/html'
import { parseId } from '../../ids.ts'
import { texts } from '../../languages/current.ts'
import { decodeCursor, encodeCursor } from '../../paging.ts'
import { programOf } from '../client-name.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { ago, emptyList, formToken, pageHead } from '../layout.ts'
import { notFound } from '../problem.ts'
import { act, mayChange, renderAdmin, requireReader } from './acting.ts'
import { listFoot } from './list-foot.ts'
import { personLinks } from './person-links.ts'
import { adminTexts } from './texts.ts'

const ROWS_PER_PAGE = 40

/** /admin/agents: live connections of everybody. */
export async function renderAllAgents(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { agents } = adminTexts
  const page = { limit: ROWS_PER_PAGE, after: decodeCursor(c.req.query('cursor') ?? '') }
  const { rows, next } = await kit.administration.agents(page)
  const ownerLink = await personLinks(
    kit,
    rows.map(({ userId }) => userId),
  )
  const now = kit.clock.now()
  const token = mayChange(kit, signedIn) ? kit.forms.token(c) : null
  // The row of a connection that was just closed may remain for a moment.
  const disconnectedId = parseId(c.req.query('disconnected') ?? '')
  const items = rows
    .filter(({ connectionId }) => connectionId !== disconnectedId)
    .map(row => {
      const name = row.keyName ?? texts.keys.unnamed
      return html`<li class="item"><div class="what"><span class="live on"><a class="name" href="/admin/keys/${row.keyId}">${name}</a></span><p>${ownerLink(row.userId)}</p><p><bdi>${programOf(row.client)}</bdi> · <code>${row.address}</code> · ${agents.node} <code>${row.nodeId.slice(-8)}</code></p></div><p class="when">${agents.since} ${ago(row.connectedAt, now)}</p>${token ? html`<form class="buttons" method="post" action="/admin/agents/${row.connectionId}/disconnect">${formToken(token)}<button class="second small harm">${agents.disconnect}<span class="unseen"> ${name}</span></button></form>` : ''}</li>`
    })
  const nodes = await kit.administration.nodes()
  const foot = listFoot(c, {
    path: '/admin/agents',
    rowCount: items.length,
    total: nodes.reduce((sum, { connections }) => sum + connections, 0),
    next: next && { cursor: encodeCursor(next) },
  })
  const body = html`${pageHead(agents.title, agents.lead)}
<section class="card flush">${items.length > 0 ? html`<ul class="list">${items}</ul>` : emptyList(agents.empty, agents.emptyLead)}${foot}</section>`
  return renderAdmin(kit, c, 'agents', { title: agents.title }, body)
}

export function disconnectAgent(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/agents', 'disconnected', async (_form, by) => {
    const id = parseId(c.req.param('id') ?? '')
    if (!id) throw notFound()
    await kit.administration.disconnect(id, by())
    return c.redirect(`/admin/agents?done=disconnected&disconnected=${id}`, 303)
  })
}
