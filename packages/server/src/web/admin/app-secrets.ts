import { html } from 'hono/html'
import { type App, isClientUrl } from '../../apps/app.ts'
import { type AppSecret, removedByNext } from '../../apps/app-secret.ts'
import { parseId } from '../../ids.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { type Html, pageHead, time } from '../layout.ts'
import { notFound } from '../problem.ts'
import { reasonField, renderAdmin, requireRecentAdministrator } from './acting.ts'
import { appsTexts } from './apps-texts.ts'
import { actorOf } from './audit-row.ts'
import { renderQuestion } from './confirmation.ts'
import { personLinks } from './person-links.ts'
import { adminTexts } from './texts.ts'

/** Maximum number of audit rows that are searched for the creation of the app's two secrets. */
const MAX_AUDIT_ROWS = 20

/** Who created a secret and why, by the secret's id; without secrets of unknown origin. */
type SecretOrigins = ReadonlyMap<string, Html>

/** The secrets of an app, each with the time of its creation, and its actor and reason if the audit has them. */
export async function secretsCard(
  kit: PageKit,
  app: App,
  secrets: readonly AppSecret[],
  isEditable: boolean,
): Promise<Html> {
  const { id } = app
  const secretOrigins = await secretOriginsOf(kit, app, secrets)
  const rows = secrets.map((secret, at) =>
    secretRow(id, secret, at, secrets.length, secretOrigins, isEditable),
  )
  const newSecretLink = isEditable
    ? html`<p class="card-foot"><a class="button second" href="${appPath(id)}/new-secret">${appsTexts.newSecret}</a></p>`
    : ''
  return html`<section class="card flush"><div class="card-head"><h2>${appsTexts.secrets}</h2><p class="quiet">${secrets.length > 0 ? appsTexts.secretsLead : appsTexts.noSecret}</p></div>${secrets.length > 0 ? html`<ul class="list">${rows}</ul>` : ''}${newSecretLink}</section>`
}

function secretRow(
  appId: string,
  secret: AppSecret,
  at: number,
  count: number,
  secretOrigins: SecretOrigins,
  isEditable: boolean,
): Html {
  const { newest, oldest, removeSecret } = appsTexts
  const tag =
    count > 1 ? html`<span class="tag${at === 0 ? ' active' : ''}">${at === 0 ? newest : oldest}</span> ` : ''
  const removeLink = isEditable
    ? html`<div class="end"><a class="button second small harm" href="${appPath(appId)}/remove-secret?secret=${secret.id}">${removeSecret}<span class="unseen"> ${secret.id}</span></a></div>`
    : ''
  return html`<li class="item"><div class="what">${tag}${secretDescription(secret, secretOrigins)}<p><code>${secret.id}</code></p></div><p class="when"></p>${removeLink}</li>`
}

function secretDescription({ id, createdAt }: AppSecret, secretOrigins: SecretOrigins): Html {
  const origin = secretOrigins.get(id)
  return html`<span class="name">${appsTexts.created} ${time(createdAt)}</span>${origin ? html` <span class="quiet">${origin}</span>` : ''}`
}

async function secretOriginsOf(
  kit: PageKit,
  app: App,
  secrets: readonly AppSecret[],
): Promise<SecretOrigins> {
  const page = { limit: MAX_AUDIT_ROWS, after: null }
  const { rows } = await kit.store.audit.list({ subject: app.id, type: 'app.secret_created' }, page)
  const personLink = await personLinks(
    kit,
    rows.map(({ actor }) => actor.id),
  )
  const createdWithApp = secrets.filter(({ createdAt }) => createdAt === app.createdAt)
  return new Map([
    ...createdWithApp.map(({ id }) => [id, html`${appsTexts.withApp}`] as const),
    ...rows.map(
      event =>
        [
          String(event.after?.secret_id),
          html`${actorOf(event, personLink)}${event.reason?.text ? html`: <q>${event.reason.text}</q>` : ''}`,
        ] as const,
    ),
  ])
}

/** GET /admin/apps/:id/new-secret: asks for the reason, and names the secret that a new one removes. */
export async function renderNewSecret(kit: PageKit, c: PageContext): Promise<Response> {
  const id = idOf(c)
  requireRecentAdministrator(kit, c, appPath(id))
  const app = await kit.apps.find(id)
  if (app.isPublic || isClientUrl(id)) throw notFound()
  const secrets = await kit.apps.secrets(id)
  const secretOrigins = await secretOriginsOf(kit, app, secrets)
  const removedSecret = removedByNext(secrets)
  return renderQuestion(kit, c, {
    section: 'apps',
    title: appsTexts.newSecretTitle(app.name),
    body: removedSecret
      ? html`<p>${appsTexts.removesOldest}</p><ul><li>${secretDescription(removedSecret, secretOrigins)}</li></ul>`
      : html`<p>${appsTexts.keepsOther}</p>`,
    action: `${appPath(id)}/new-secret`,
    fields: html`<input type="hidden" name="removes" value="${removedSecret?.id ?? ''}">${reasonField('reason', true)}`,
    submit: removedSecret ? appsTexts.replaceOldest : appsTexts.createSecret,
    isHarmless: removedSecret === null,
    cancel: { href: appPath(id), label: adminTexts.cancel },
  })
}

/** GET /admin/apps/:id/remove-secret: asks for confirmation, and says whether another secret is left. */
export async function renderRemoveSecret(kit: PageKit, c: PageContext): Promise<Response> {
  const id = idOf(c)
  requireRecentAdministrator(kit, c, appPath(id))
  const [app, secrets] = await Promise.all([kit.apps.find(id), kit.apps.secrets(id)])
  const secretOrigins = await secretOriginsOf(kit, app, secrets)
  const secret = secrets.find(each => each.id === parseId(c.req.query('secret') ?? ''))
  if (!secret) throw notFound()
  return renderQuestion(kit, c, {
    section: 'apps',
    title: appsTexts.removeTitle,
    body: html`<ul><li>${secretDescription(secret, secretOrigins)}</li></ul><p>${secrets.length > 1 ? appsTexts.leavesOne : appsTexts.leavesNone}</p>`,
    action: `${appPath(id)}/remove-secret`,
    fields: html`<input type="hidden" name="secret" value="${secret.id}">${reasonField('reason', true)}`,
    submit: appsTexts.removeNow,
    cancel: { href: appPath(id), label: adminTexts.cancel },
  })
}

/** The only page that shows a new secret, which is null for an app without one. Browsers do not cache the page. */
export function renderSecret(
  kit: PageKit,
  c: PageContext,
  id: string,
  { title, secret, note }: { title: string; secret: string | null; note: string | null },
): Response | Promise<Response> {
  const copyableField = (label: string, name: string, value: string) =>
    html`<div class="field"><strong>${label}</strong><div class="secret"><code id="${name}" tabindex="0">${value}</code><button type="button" class="second copy" data-copy="${name}" data-copied="${appsTexts.copied}" aria-live="polite">${appsTexts.copy}</button></div></div>`
  const body = html`${pageHead(title, id)}
${note ? html`<p class="banner notice">${note}</p>` : ''}
<section class="card">${copyableField('Issuer', 'issuer', kit.publicUrl)}${copyableField('client_id', 'client-id', id)}${secret ? html`${copyableField('client_secret', 'client-secret', secret)}<p class="quiet">${appsTexts.secretLead}</p>` : html`<p class="quiet">${appsTexts.noSecret}</p>`}</section>
<p><a class="button second" href="${appPath(id)}">${appsTexts.toApp}</a></p>`
  c.header('Referrer-Policy', 'no-referrer')
  return renderAdmin(kit, c, 'apps', { title }, body, 201)
}

export function appPath(id: string): string {
  return `/admin/apps/${encodeURIComponent(id)}`
}

export function idOf(c: PageContext): string {
  return c.req.param('id') ?? ''
}
