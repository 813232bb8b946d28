import { html } from 'hono/html'
import type { AuditEvent } from '../../audit/audit-event.ts'
import { parseId } from '../../ids.ts'
import { decodeCursor, encodeCursor } from '../../paging.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { empty, type Html, pageHead, time } from '../layout.ts'
import { renderAdmin, requireReader } from './acting.ts'
import { adminTexts } from './texts.ts'

const ROWS = 40

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

export function auditRow({ type, at, actor, subject, before, after, reason, network }: AuditEvent): Html {
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
