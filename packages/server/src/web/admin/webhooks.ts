import { html, raw } from 'hono/html'
import { parseId } from '../../ids.ts'
import {
  isWebhookEventType,
  WEBHOOK_EVENT_TYPES,
  type WebhookEventType,
} from '../../webhooks/webhook-event.ts'
import type { WebhookStatus } from '../../webhooks/webhooks.ts'
import { copyableValue } from '../copyable.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { day, emptyList, formToken, type Html, pageHead, time } from '../layout.ts'
import { notFound } from '../problem.ts'
import { act, backTo, mayChange, refusalOf, renderAdmin, requireReader } from './acting.ts'
import { textField } from './app-form.ts'
import { type DangerousAct, dangerCard } from './danger.ts'
import { deliveriesCard, testResult } from './deliveries.ts'
import type { Notice } from './texts.ts'
import { WEBHOOK_EVENT_DESCRIPTIONS, WEBHOOK_EVENT_GROUPS } from './webhook-events-texts.ts'
import { webhooksTexts as texts } from './webhooks-texts.ts'

/** The values of the form, possibly refused ones. */
interface WebhookFields {
  url: string
  events: readonly WebhookEventType[]
}

export function renderWebhooks(kit: PageKit, c: PageContext): Promise<Response> {
  return renderList(kit, c, { url: '', events: [] })
}

async function renderList(
  kit: PageKit,
  c: PageContext,
  fields: WebhookFields,
  problem: string | null = null,
): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const rows = await (await kit.webhooks()).list()
  const form = mayChange(kit, signedIn)
    ? html`<details class="card"${problem || rows.length === 0 ? raw(' open') : ''}><summary>${texts.create}</summary>
<form method="post" action="/admin/webhooks" class="create">${formToken(kit.forms.token(c))}${settingsFields(fields)}<button>${texts.create}</button></form></details>`
    : ''
  const body = html`${pageHead(texts.title, texts.lead)}
<section class="card flush">${rows.length > 0 ? table(rows) : emptyList(texts.empty, texts.emptyLead)}</section>
${form}`
  return renderAdmin(kit, c, 'webhooks', { title: texts.title, problem }, body, problem ? 400 : 200)
}

function table(rows: readonly WebhookStatus[]): Html {
  const { columns } = texts
  return html`<table class="rows even"><thead><tr><th scope="col">${columns.url}</th><th scope="col">${columns.events}</th><th scope="col">${columns.state}</th><th scope="col" class="amount">${columns.waiting}</th></tr></thead><tbody>
${rows.map(
  row => html`<tr><th scope="row"><a class="name" href="${pathOf(row.id)}">${row.url}</a></th><td data-label="${columns.events}">${row.events.length || texts.all}</td><td data-label="${columns.state}">${stateTag(row)}</td><td data-label="${columns.waiting}" class="amount">${row.waiting}</td></tr>
`,
)}</tbody></table>`
}

function stateTag({ disabledBy }: WebhookStatus): Html {
  return disabledBy === null
    ? html`<span class="tag active">${texts.enabled}</span>`
    : html`<span class="tag revoked">${texts.disabled[disabledBy]}</span>`
}

function settingsFields({ url, events }: WebhookFields): Html {
  const groups = Map.groupBy(WEBHOOK_EVENT_TYPES, type => WEBHOOK_EVENT_GROUPS[type.split('.')[0]!]!)
  const choice = (type: WebhookEventType) =>
    html`<div class="choice"><input type="checkbox" id="${type}" name="events" value="${type}"${events.includes(type) ? raw(' checked') : ''} aria-describedby="${type}-words"><div><label for="${type}"><code>${type}</code></label><p class="hint" id="${type}-words">${WEBHOOK_EVENT_DESCRIPTIONS[type]}</p></div></div>`
  const fieldsets = [...groups].map(
    ([group, types]) => html`<fieldset><legend>${group}</legend>${types.map(choice)}</fieldset>`,
  )
  return html`${textField('url', texts.url, url, { required: true, hint: texts.urlHint })}
<fieldset class="events"><legend>${texts.events}</legend><p class="hint">${texts.eventsHint}</p><div class="columns">${fieldsets}</div></fieldset>`
}

function readFields(form: URLSearchParams): WebhookFields {
  return { url: (form.get('url') ?? '').trim(), events: form.getAll('events').filter(isWebhookEventType) }
}

export function createWebhook(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/webhooks', 'webhook_saved', async (form, by) => {
    const { url, events } = readFields(form)
    try {
      const { webhook, secret } = await (await kit.webhooks()).create({ url, events: [...events] }, by())
      return renderSecret(kit, c, webhook.id, secret, null)
    } catch (error) {
      return renderList(kit, c, { url, events }, refusalOf(error))
    }
  })
}

/** The only page that shows a new secret. Browsers do not cache it. */
function renderSecret(
  kit: PageKit,
  c: PageContext,
  id: string,
  secret: string,
  note: string | null,
): Response | Promise<Response> {
  const body = html`${pageHead(texts.secretTitle, texts.secretLead)}
${note ? html`<p class="banner notice">${note}</p>` : ''}
<section class="card"><div class="secret"><code id="secret" tabindex="0">${secret}</code><button type="button" class="second copy" data-copy="secret" data-copied="${texts.copied}" aria-live="polite">${texts.copy}</button></div></section>
<p><a class="button second" href="${pathOf(id)}">${texts.toWebhook}</a></p>`
  c.header('Referrer-Policy', 'no-referrer')
  return renderAdmin(kit, c, 'webhooks', { title: texts.secretTitle }, body, 201)
}

export async function renderWebhook(kit: PageKit, c: PageContext): Promise<Response> {
  requireReader(kit, c)
  return renderOne(kit, c, await (await kit.webhooks()).find(idOf(c)))
}

async function renderOne(
  kit: PageKit,
  c: PageContext,
  webhook: WebhookStatus,
  { problem = null, testCard = '' }: { problem?: string | null; testCard?: Html | '' } = {},
): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const token = mayChange(kit, signedIn) ? kit.forms.token(c) : null
  const { dropped, createdAt } = webhook
  const body = html`${backTo('webhooks')}
<div class="head"><div><h1>${webhook.url}</h1><p class="lead">${stateTag(webhook)} ${texts.created} ${day(createdAt)} · ${copyableValue('webhook-id', webhook.id)}</p></div></div>
${dropped > 0 ? html`<p class="banner notice">${texts.dropped(dropped)}</p>` : ''}
${testCard}
${token ? actions(webhook, token) : ''}
${await deliveriesCard(kit, c, webhook.id, token)}
${secretsCard(webhook, token)}
<section class="card"><h2>${texts.settings}</h2>${token ? html`<form method="post" action="${pathOf(webhook.id)}/change" class="create">${formToken(token)}${settingsFields(webhook)}<button>${texts.save}</button></form>` : html`<dl class="facts"><div><dt>${texts.events}</dt><dd>${webhook.events.join(' ') || texts.all}</dd></div></dl>`}</section>
${token ? dangerCard([removalAct(webhook)], token) : ''}`
  return renderAdmin(kit, c, 'webhooks', { title: texts.title, problem }, body, problem ? 400 : 200)
}

function removalAct({ id }: WebhookStatus): DangerousAct {
  return {
    action: `${pathOf(id)}/remove`,
    title: texts.remove,
    lead: texts.removeLead,
    fields: '',
    isFinal: true,
  }
}

function actions({ id, disabledAt }: WebhookStatus, token: string): Html {
  const button = (name: string, label: string) =>
    html`<form method="post" action="${pathOf(id)}/${name}">${formToken(token)}<button class="second">${label}</button></form>`
  return html`<section class="card"><div class="buttons">${button('test', texts.test)}${disabledAt === null ? button('disable', texts.disable) : button('enable', texts.enable)}</div><p class="hint">${texts.testLead} ${texts.disableLead}</p></section>`
}

function secretsCard({ id, secrets }: WebhookStatus, token: string | null): Html {
  const row = (secret: WebhookStatus['secrets'][number]) =>
    html`<li class="item"><div class="what"><span class="name">${texts.created} ${time(secret.createdAt)}</span><p><code>${secret.id}</code></p></div><p class="when"></p>${token && secrets.length > 1 ? html`<form class="buttons" method="post" action="${pathOf(id)}/remove-secret">${formToken(token)}<input type="hidden" name="secret" value="${secret.id}"><button class="second small harm">${texts.removeSecret}<span class="unseen"> ${secret.id}</span></button></form>` : ''}</li>`
  const newSecretForm = token
    ? html`<form class="card-foot" method="post" action="${pathOf(id)}/new-secret">${formToken(token)}<button class="second">${texts.newSecret}</button></form>`
    : ''
  return html`<section class="card flush"><div class="card-head"><h2>${texts.secrets}</h2><p class="quiet">${texts.secretsLead}</p></div><ul class="list">${secrets.map(row)}</ul>${newSecretForm}</section>`
}

const NOTICES: { [act: string]: Notice | undefined } = Object.assign(Object.create(null), {
  enable: 'webhook_enabled',
  disable: 'webhook_disabled',
  'remove-secret': 'webhook_secret_removed',
  'send-again': 'event_queued',
} satisfies Record<string, Notice>)

export function changeWebhook(kit: PageKit, c: PageContext): Promise<Response> {
  const id = idOf(c)
  const notice = NOTICES[c.req.param('act') ?? ''] ?? 'webhook_saved'
  return act(kit, c, pathOf(id), notice, async (form, by) => {
    const webhooks = await kit.webhooks()
    switch (c.req.param('act')) {
      case 'change': {
        const { url, events } = readFields(form)
        try {
          return await webhooks.change(id, { url, events: [...events] }, by())
        } catch (error) {
          const problem = refusalOf(error)
          return renderOne(kit, c, { ...(await webhooks.find(id)), url, events: [...events] }, { problem })
        }
      }
      case 'enable':
        return webhooks.change(id, { enabled: true }, by())
      case 'disable':
        return webhooks.change(id, { enabled: false }, by())
      case 'new-secret':
        return renderSecret(kit, c, id, (await webhooks.addSecret(id, by())).secret, texts.oldWorks)
      case 'remove-secret':
        return webhooks.removeSecret(id, parseId(form.get('secret') ?? '') ?? '', by())
      case 'test': {
        const testCard = testResult(await webhooks.test(id, by()))
        return renderOne(kit, c, await webhooks.find(id), { testCard })
      }
      case 'send-again':
        return webhooks.sendAgain(parseId(form.get('delivery') ?? '') ?? '', by())
      case 'remove':
        await webhooks.remove(id, by())
        return c.redirect('/admin/webhooks?done=webhook_removed', 303)
      default:
        throw notFound()
    }
  })
}

function idOf(c: PageContext): string {
  const id = parseId(c.req.param('id') ?? '')
  if (!id) throw notFound()
  return id
}

function pathOf(id: string): string {
  return `/admin/webhooks/${id}`
}
