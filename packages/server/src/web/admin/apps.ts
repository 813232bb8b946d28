import { html, raw } from 'hono/html'
import { type App, DEFAULT_APP_SETTINGS, isAppId, isClientUrl } from '../../apps/app.ts'
import type { AppSecret } from '../../apps/app-secret.ts'
import { parseId } from '../../ids.ts'
import { copyable } from '../copyable.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { day, empty, factList, formToken, type Html, pageHead, time } from '../layout.ts'
import { notFound } from '../problem.ts'
import {
  act,
  backTo,
  invalid,
  mayChange,
  reasonField,
  refusalOf,
  renderAdmin,
  requireReader,
} from './acting.ts'
import { flag, line, readSettings, settingsFields } from './app-form.ts'
import { appsTexts } from './apps-texts.ts'
import { dangerCard } from './danger.ts'
import { adminTexts } from './texts.ts'

const ROWS = 40

/** /admin/apps */
export async function renderApps(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const selfRegistered = c.req.query('kind') === 'self'
  const after = c.req.query('after') ?? ''
  const known = isAppId(after) || isClientUrl(after) ? after : null
  const found = await kit.apps.page({ limit: ROWS, after: known, selfRegistered })
  const rows = found.slice(0, ROWS)
  const kind = selfRegistered ? 'self' : 'own'
  const more = found.length > ROWS && new URLSearchParams({ kind, after: rows.at(-1)!.id })
  const tab = (name: string, label: string) =>
    html`<a href="/admin/apps?kind=${name}"${name === kind ? raw(' aria-current="true"') : ''}>${label}</a>`
  const register = mayChange(kit, signedIn)
    ? html`<a class="button" href="/admin/register-app">${appsTexts.register}</a>`
    : ''
  const body = html`${pageHead(appsTexts.title, appsTexts.lead, register)}
<nav class="filter" aria-label="${appsTexts.title}">${tab('own', appsTexts.own)}${tab('self', appsTexts.selfRegistered)}</nav>
<section class="card flush">${rows.length > 0 ? appsTable(rows) : empty(appsTexts.empty, appsTexts.emptyLead)}${more ? html`<p class="card-foot"><a href="/admin/apps?${more.toString()}">${adminTexts.older}</a></p>` : ''}</section>`
  return renderAdmin(kit, c, 'apps', { title: appsTexts.title }, body)
}

function appsTable(apps: readonly App[]): Html {
  const { columns } = appsTexts
  return html`<table class="rows even"><thead><tr><th scope="col">${columns.app}</th><th scope="col">${columns.kind}</th><th scope="col" class="amount">${columns.redirects}</th><th scope="col">${columns.since}</th></tr></thead><tbody>
${apps.map(
  app => html`<tr><th scope="row"><a class="name" href="${pathOf(app.id)}">${app.name}</a> <code>${app.id}</code></th><td data-label="${columns.kind}">${kindOf(app)}</td><td data-label="${columns.redirects}" class="amount">${app.redirectUris.length}</td><td data-label="${columns.since}">${app.createdAt > 0 ? day(app.createdAt) : appsTexts.builtIn}</td></tr>
`,
)}</tbody></table>`
}

function kindOf({ firstParty, trusted, isPublic }: App): Html {
  const { kinds } = appsTexts
  const rights = firstParty ? kinds.firstParty : trusted ? kinds.trusted : ''
  return html`${isPublic ? kinds.public : kinds.confidential}${rights ? html` <span class="tag active">${rights}</span>` : ''}`
}

function pathOf(id: string): string {
  return `/admin/apps/${encodeURIComponent(id)}`
}

/** /admin/register-app */
export function renderNewApp(kit: PageKit, c: PageContext): Response | Promise<Response> {
  return renderRegistration(kit, c, { ...DEFAULT_APP_SETTINGS, name: '', id: '' })
}

type Typed = ReturnType<typeof readSettings> & { id: string; adopt?: boolean }

function renderRegistration(
  kit: PageKit,
  c: PageContext,
  typed: Typed,
  problem: string | null = null,
): Response | Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { fields, flags } = appsTexts
  const form = html`<section class="card"><form method="post" action="/admin/apps" class="create">${formToken(kit.forms.token(c))}
${line('id', fields.id, typed.id, { required: true, max: 64, hint: fields.idHint })}
${settingsFields(typed, html`${flag('adopt', flags.adopt, typed.adopt === true)}${reasonField('reason')}`)}
<div class="buttons"><button>${appsTexts.register}</button><a class="button second" href="/admin/apps">${appsTexts.cancel}</a></div></form></section>`
  const body = html`${backTo('apps')}
${pageHead(appsTexts.register, appsTexts.registerLead)}
${mayChange(kit, signedIn) ? form : ''}`
  const status = problem === null ? 200 : 400
  return renderAdmin(kit, c, 'apps', { title: appsTexts.register, problem }, body, status)
}

/** POST /admin/apps */
export function registerApp(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/register-app', 'app_saved', async (form, by) => {
    const typed = {
      ...readSettings(form),
      id: (form.get('id') ?? '').trim().toLowerCase(),
      adopt: form.has('adopt'),
    }
    try {
      const { app, secret, older } = await kit.apps.register(typed, by(form.get('reason') ?? undefined))
      const had = older.keys + older.sessions > 0 && !typed.adopt
      const note = had ? appsTexts.older(older.keys, older.sessions) : null
      return renderSecret(kit, c, app.id, { title: appsTexts.registered, secret, note })
    } catch (error) {
      return renderRegistration(kit, c, typed, refusalOf(error))
    }
  })
}

/** The page that shows a new secret, once; neither caches nor referrers keep it. */
function renderSecret(
  kit: PageKit,
  c: PageContext,
  id: string,
  { title, secret, note }: { title: string; secret: string | null; note: string | null },
): Response | Promise<Response> {
  const shown = (label: string, name: string, value: string) =>
    html`<div class="field"><strong>${label}</strong><div class="secret"><code id="${name}" tabindex="0">${value}</code><button type="button" class="second copy" data-copy="${name}" data-copied="${appsTexts.copied}" aria-live="polite">${appsTexts.copy}</button></div></div>`
  const body = html`${pageHead(title, id)}
${note ? html`<p class="banner notice">${note}</p>` : ''}
<section class="card">${shown('Issuer', 'issuer', kit.publicUrl)}${shown('client_id', 'client-id', id)}${secret ? html`${shown('client_secret', 'client-secret', secret)}<p class="quiet">${appsTexts.secretLead}</p>` : html`<p class="quiet">${appsTexts.noSecret}</p>`}</section>
<p><a class="button second" href="${pathOf(id)}">${appsTexts.toApp}</a></p>`
  c.header('Referrer-Policy', 'no-referrer')
  return renderAdmin(kit, c, 'apps', { title }, body, 201)
}

/** /admin/apps/:id */
export async function renderApp(kit: PageKit, c: PageContext): Promise<Response> {
  requireReader(kit, c)
  return renderOneApp(kit, c, await kit.apps.find(idOf(c)))
}

async function renderOneApp(
  kit: PageKit,
  c: PageContext,
  app: App,
  problem: string | null = null,
): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const token = mayChange(kit, signedIn) ? kit.forms.token(c) : null
  const secrets = app.isPublic ? [] : await kit.apps.secrets(app.id)
  const body = html`${backTo('apps')}
<div class="head"><div><h1>${app.name}</h1><p class="lead">${kindOf(app)} · ${copyable('app-id', app.id)}</p></div></div>
${secretsCard(app, secrets, token)}
<section class="card"><h2>${appsTexts.settings}</h2>${token ? html`<form method="post" action="${pathOf(app.id)}/change" class="create">${formToken(token)}${settingsFields(app, reasonField('reason'))}<button>${appsTexts.save}</button></form>` : facts(app)}</section>
${token ? removal(app, token) : ''}`
  return renderAdmin(kit, c, 'apps', { title: app.name, problem }, body, problem === null ? 200 : 400)
}

function secretsCard({ id, isPublic }: App, secrets: readonly AppSecret[], token: string | null): Html {
  const row = (secret: AppSecret, at: number) =>
    html`<li class="item"><div class="what"><span class="name">${appsTexts.created} ${time(secret.createdAt)}</span>${at === 0 && secrets.length > 1 ? html` <span class="tag active">${appsTexts.newest}</span>` : ''}<p><code>${secret.id}</code></p></div><p class="when"></p>${token ? html`<form class="buttons" method="post" action="${pathOf(id)}/remove-secret">${formToken(token)}<input type="hidden" name="secret" value="${secret.id}"><button class="second small harm">${appsTexts.removeSecret}<span class="unseen"> ${secret.id}</span></button></form>` : ''}</li>`
  const create =
    token && !isPublic
      ? html`<form class="card-foot" method="post" action="${pathOf(id)}/new-secret">${formToken(token)}<button class="second">${appsTexts.newSecret}</button>${secrets.length > 1 ? html` <span class="hint">${appsTexts.replaces}</span>` : ''}</form>`
      : ''
  return html`<section class="card flush"><div class="card-head"><h2>${appsTexts.secrets}</h2><p class="quiet">${secrets.length > 0 ? appsTexts.secretsLead : appsTexts.noSecret}</p></div>${secrets.length > 0 ? html`<ul class="list">${secrets.map(row)}</ul>` : ''}${create}</section>`
}

/** The settings as text, for readers who may not change them. */
function facts(app: App): Html {
  const { fields } = appsTexts
  const shown: [string, string | null][] = [
    [fields.redirectUris, app.redirectUris.join(' ')],
    [fields.logoutUris, app.logoutUris.join(' ')],
    [fields.audience, app.audience],
    [fields.scopes, app.scopes.join(' ')],
    [fields.backchannelLogoutUri, app.backchannelLogoutUri],
    [fields.verifyUrl, app.verifyUrl],
    [fields.jwksUri, app.jwksUri],
    [fields.tokenAlg, app.tokenAlg],
    [fields.idTokenAlg, app.idTokenAlg],
  ]
  return factList(shown.flatMap(([label, value]) => (value ? [[label, value] as const] : [])))
}

function removal({ id, firstParty }: App, token: string): Html {
  if (firstParty) return html`<p class="quiet">${appsTexts.staysLead}</p>`
  const removing = {
    action: `${pathOf(id)}/remove`,
    title: appsTexts.remove,
    lead: appsTexts.removeLead,
    fields: html`${line('confirm', appsTexts.fields.id, '', { required: true })}${reasonField('remove-reason')}`,
    isFinal: true,
  }
  return dangerCard([removing], token)
}

function idOf(c: PageContext): string {
  return c.req.param('id') ?? ''
}

/** POST /admin/apps/:id/:act */
export function changeApp(kit: PageKit, c: PageContext): Promise<Response> {
  const id = idOf(c)
  const done = c.req.param('act') === 'remove-secret' ? 'app_secret_removed' : 'app_saved'
  return act(kit, c, pathOf(id), done, async (form, by) => {
    const who = by(form.get('reason') ?? undefined)
    switch (c.req.param('act')) {
      case 'change':
        return changeSettings(kit, c, id, form, who)
      case 'new-secret': {
        const { secret } = await kit.apps.newSecret(id, who)
        return renderSecret(kit, c, id, { title: appsTexts.secretTitle, secret, note: appsTexts.oldWorks })
      }
      case 'remove-secret':
        return kit.apps.removeSecret(id, parseId(form.get('secret') ?? '') ?? '', who)
      case 'remove':
        if (form.get('confirm')?.trim() !== id) throw invalid(appsTexts.mismatch)
        await kit.apps.remove(id, who)
        return c.redirect('/admin/apps?done=app_removed', 303)
      default:
        throw notFound()
    }
  })
}

async function changeSettings(
  kit: PageKit,
  c: PageContext,
  id: string,
  form: URLSearchParams,
  by: Parameters<typeof kit.apps.change>[2],
): Promise<App | Response> {
  const typed = readSettings(form)
  try {
    return await kit.apps.change(id, typed, by)
  } catch (error) {
    const problem = refusalOf(error)
    return renderOneApp(kit, c, { ...(await kit.apps.find(id)), ...typed }, problem)
  }
}
