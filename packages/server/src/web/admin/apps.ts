import { html, raw } from 'hono/html'
import { type App, DEFAULT_APP_SETTINGS, isAppId, isClientUrl } from '../../apps/app.ts'
import { parseId } from '../../ids.ts'
import { copyableValue } from '../copyable.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { day, emptyList, factList, formToken, type Html, pageHead } from '../layout.ts'
import { notFound } from '../problem.ts'
import {
  act,
  backTo,
  invalidForm,
  mayChange,
  reasonField,
  refusalOf,
  renderAdmin,
  requireReader,
  requireReason,
} from './acting.ts'
import { checkbox, readSettings, settingsFields, textField } from './app-form.ts'
import { appPath, idOf, renderSecret, secretsCard } from './app-secrets.ts'
import { appsTexts } from './apps-texts.ts'
import { dangerCard } from './danger.ts'
import { listFoot } from './list-foot.ts'

const ROWS_PER_PAGE = 40

export async function renderApps(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const selfRegistered = c.req.query('kind') === 'self'
  const after = c.req.query('after') ?? ''
  const afterId = isAppId(after) || isClientUrl(after) ? after : null
  const apps = await kit.apps.page({ limit: ROWS_PER_PAGE, after: afterId, selfRegistered })
  const rows = apps.slice(0, ROWS_PER_PAGE)
  const kind = selfRegistered ? 'self' : 'own'
  const foot = listFoot(c, {
    path: '/admin/apps',
    filters: { kind },
    rowCount: rows.length,
    next: apps.length > ROWS_PER_PAGE ? { after: rows.at(-1)!.id } : null,
  })
  const tab = (name: string, label: string) =>
    html`<a href="/admin/apps?kind=${name}"${name === kind ? raw(' aria-current="true"') : ''}>${label}</a>`
  const registerLink = mayChange(kit, signedIn)
    ? html`<a class="button" href="/admin/register-app">${appsTexts.register}</a>`
    : ''
  const body = html`${pageHead(appsTexts.title, appsTexts.lead, registerLink)}
<nav class="filter" aria-label="${appsTexts.title}">${tab('own', appsTexts.own)}${tab('self', appsTexts.selfRegistered)}</nav>
<section class="card flush">${rows.length > 0 ? appsTable(rows) : emptyList(appsTexts.empty, appsTexts.emptyLead)}${foot}</section>`
  return renderAdmin(kit, c, 'apps', { title: appsTexts.title }, body)
}

function appsTable(apps: readonly App[]): Html {
  const { columns } = appsTexts
  return html`<table class="rows even"><thead><tr><th scope="col">${columns.app}</th><th scope="col">${columns.kind}</th><th scope="col" class="amount">${columns.redirects}</th><th scope="col">${columns.since}</th></tr></thead><tbody>
${apps.map(
  app => html`<tr><th scope="row"><a class="name" href="${appPath(app.id)}">${app.name}</a> <code>${app.id}</code></th><td data-label="${columns.kind}">${kindOf(app)}</td><td data-label="${columns.redirects}" class="amount">${app.redirectUris.length}</td><td data-label="${columns.since}">${app.createdAt > 0 ? day(app.createdAt) : appsTexts.builtIn}</td></tr>
`,
)}</tbody></table>`
}

function kindOf({ firstParty, trusted, isPublic }: App): Html {
  const { kinds } = appsTexts
  const trustLabel = firstParty ? kinds.firstParty : trusted ? kinds.trusted : ''
  return html`${isPublic ? kinds.public : kinds.confidential}${trustLabel ? html` <span class="tag active">${trustLabel}</span>` : ''}`
}

export function renderNewApp(kit: PageKit, c: PageContext): Response | Promise<Response> {
  return renderRegistration(kit, c, { ...DEFAULT_APP_SETTINGS, name: '', id: '' })
}

type TypedApp = ReturnType<typeof readSettings> & { id: string; adopt?: boolean }

function renderRegistration(
  kit: PageKit,
  c: PageContext,
  typed: TypedApp,
  problem: string | null = null,
): Response | Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { fields, flags } = appsTexts
  const form = html`<section class="card"><form method="post" action="/admin/apps" class="create">${formToken(kit.forms.token(c))}
${textField('id', fields.id, typed.id, { required: true, max: 64, hint: fields.idHint })}
${settingsFields(typed, html`${checkbox('adopt', flags.adopt, typed.adopt === true)}${reasonField('reason')}`)}
<div class="buttons"><button>${appsTexts.register}</button><a class="button second" href="/admin/apps">${appsTexts.cancel}</a></div></form></section>`
  const body = html`${backTo('apps')}
${pageHead(appsTexts.register, appsTexts.registerLead)}
${mayChange(kit, signedIn) ? form : ''}`
  const status = problem === null ? 200 : 400
  return renderAdmin(kit, c, 'apps', { title: appsTexts.register, problem }, body, status)
}

export function registerApp(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/register-app', 'app_saved', async (form, by) => {
    const typedApp = {
      ...readSettings(form),
      id: (form.get('id') ?? '').trim().toLowerCase(),
      adopt: form.has('adopt'),
    }
    try {
      const { app, secret, older } = await kit.apps.register(typedApp, by(form.get('reason') ?? undefined))
      const hasUnadopted = older.keys + older.sessions > 0 && !typedApp.adopt
      const note = hasUnadopted ? appsTexts.older(older.keys, older.sessions) : null
      return renderSecret(kit, c, app.id, { title: appsTexts.registered, secret, note })
    } catch (error) {
      return renderRegistration(kit, c, typedApp, refusalOf(error))
    }
  })
}

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
  const describesItself = isClientUrl(app.id)
  const formToChange =
    token && !describesItself
      ? html`<form method="post" action="${appPath(app.id)}/change" class="create">${formToken(token)}${settingsFields(app, reasonField('reason'))}<button>${appsTexts.save}</button></form>`
      : null
  const body = html`${backTo('apps')}
<div class="head"><div><h1>${app.name}</h1><p class="lead">${kindOf(app)} · ${copyableValue('app-id', app.id)}</p></div></div>
${await secretsCard(kit, app, secrets, formToChange !== null && !app.isPublic)}
<section class="card"><h2>${appsTexts.settings}</h2>${describesItself ? html`<p class="quiet">${appsTexts.describesItself}</p>` : ''}${formToChange ?? facts(app)}</section>
${token ? removalCard(app, token) : ''}`
  return renderAdmin(kit, c, 'apps', { title: app.name, problem }, body, problem === null ? 200 : 400)
}

/** The settings as text, for readers who may not change them. */
function facts(app: App): Html {
  const { fields } = appsTexts
  const settings: [string, string | null][] = [
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
  return factList(settings.flatMap(([label, value]) => (value ? [[label, value] as const] : [])))
}

function removalCard({ id, firstParty }: App, token: string): Html {
  if (firstParty) return html`<p class="quiet">${appsTexts.staysLead}</p>`
  const removeAct = {
    action: `${appPath(id)}/remove`,
    title: appsTexts.remove,
    lead: isClientUrl(id) ? appsTexts.removeSelfDescribedLead : appsTexts.removeLead,
    fields: html`${textField('confirm', appsTexts.fields.id, '', { required: true })}${reasonField('remove-reason')}`,
    isFinal: true,
  }
  return dangerCard([removeAct], token)
}

export function changeApp(kit: PageKit, c: PageContext): Promise<Response> {
  const id = idOf(c)
  const notice = c.req.param('act') === 'remove-secret' ? 'app_secret_removed' : 'app_saved'
  return act(kit, c, appPath(id), notice, async (form, by) => {
    const actedBy = by(form.get('reason') ?? undefined)
    switch (c.req.param('act')) {
      case 'change':
        return changeSettings(kit, c, id, form, actedBy)
      case 'new-secret': {
        requireReason(actedBy)
        const { secret } = await kit.apps.newSecret(id, actedBy, parseId(form.get('removes') ?? ''))
        return renderSecret(kit, c, id, { title: appsTexts.secretTitle, secret, note: appsTexts.oldWorks })
      }
      case 'remove-secret':
        requireReason(actedBy)
        return kit.apps.removeSecret(id, parseId(form.get('secret') ?? '') ?? '', actedBy)
      case 'remove':
        if (form.get('confirm')?.trim() !== id) throw invalidForm(appsTexts.mismatch)
        await kit.apps.remove(id, actedBy)
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
  const settings = readSettings(form)
  try {
    return await kit.apps.change(id, settings, by)
  } catch (error) {
    const problem = refusalOf(error)
    return renderOneApp(kit, c, { ...(await kit.apps.find(id)), ...settings }, problem)
  }
}
