import { html, raw } from 'hono/html'
import { decodeCursor, encodeCursor } from '../../paging.ts'
import type { DeliveryState, WebhookDelivery } from '../../webhooks/webhook.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { formToken, type Html, time } from '../layout.ts'
import { type PersonLink, personLinks } from './person-links.ts'
import { adminTexts } from './texts.ts'
import { webhooksTexts as texts } from './webhooks-texts.ts'

const ROWS_PER_PAGE = 40
const STATES: readonly DeliveryState[] = ['waiting', 'delivered', 'failed', 'dropped']
const TAG_CLASSES = { waiting: 'warn', delivered: 'active', failed: 'revoked', dropped: 'expired' } as const

/** The sent and queued events of an endpoint. @param token the form token; null for no forms to send events again */
export async function deliveriesCard(
  kit: PageKit,
  c: PageContext,
  id: string,
  token: string | null,
): Promise<Html> {
  const state = STATES.find(each => each === c.req.query('state')) ?? null
  const page = { limit: ROWS_PER_PAGE, after: decodeCursor(c.req.query('cursor') ?? '') }
  const { rows, next } = await (await kit.webhooks()).deliveries(id, state, page)
  const path = `/admin/webhooks/${id}`
  const personLink = await personLinks(
    kit,
    rows.map(({ subject }) => (subject.type === 'user' ? subject.id : null)),
  )
  const currentTab = state ?? 'all'
  const tabs = (['all', ...STATES] as const).map(
    each =>
      html`<a href="${path}?state=${each}"${each === currentTab ? raw(' aria-current="true"') : ''}>${texts.states[each]}</a>`,
  )
  return html`<section class="card flush"><div class="card-head"><h2>${texts.deliveries}</h2><p class="quiet">${texts.deliveriesLead}</p></div>
<nav class="filter card-head" aria-label="${texts.deliveries}">${tabs}</nav>
${rows.length > 0 ? html`<ul class="list">${rows.map(row => deliveryRow(row, path, personLink, token))}</ul>` : html`<p class="card-foot quiet">${texts.noDeliveries}</p>`}${next ? html`<p class="card-foot"><a href="${path}?state=${currentTab}&amp;cursor=${encodeCursor(next)}">${adminTexts.list.next}</a></p>` : ''}</section>`
}

function deliveryRow(row: WebhookDelivery, path: string, personLink: PersonLink, token: string | null): Html {
  const { id, type, subject, sequence, state, attempts, createdAt } = row
  const sendAgainForm =
    token && state !== 'waiting'
      ? html`<form class="buttons" method="post" action="${path}/send-again">${formToken(token)}<input type="hidden" name="delivery" value="${id}"><button class="second small">${texts.again}<span class="unseen"> ${id}</span></button></form>`
      : ''
  return html`<li class="item"><div class="what"><span class="name">${type}</span><p>${subject.type === 'user' ? personLink(subject.id) : html`${subject.type.replaceAll('_', ' ')} <code>${subject.id}</code>`} · ${texts.number(sequence)} · ${texts.attempts(attempts)}${outcome(row)}</p></div><p class="when"><span class="tag ${TAG_CLASSES[state]}">${texts.states[state]}</span> ${time(createdAt)}</p>${sendAgainForm}</li>`
}

function outcome({ lastAttempt }: WebhookDelivery): Html | '' {
  if (!lastAttempt) return ''
  return html` · ${lastAttempt.error ?? lastAttempt.status} · ${texts.took(lastAttempt.durationMs)}`
}

/** The response of an endpoint to a test event. It is untrusted, so it is only shown as text. */
export function testResult({ state, lastAttempt }: WebhookDelivery): Html {
  return html`<section class="card" role="status"><h2>${texts.tested} <span class="tag ${TAG_CLASSES[state]}">${texts.states[state]}</span></h2>
<p>${lastAttempt?.error ?? lastAttempt?.status ?? ''} · ${texts.took(lastAttempt?.durationMs ?? 0)}</p>${lastAttempt?.status == null ? '' : html`<p><strong>${texts.answer}</strong></p><pre class="source" tabindex="0">${lastAttempt.answer || texts.noAnswer}</pre>`}</section>`
}
