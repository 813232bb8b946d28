import { SCOPES } from '@keyway/sdk/protocol'
import type { Hono } from 'hono'
import { html } from 'hono/html'
import {
  type ApiKey,
  type ApiKeyStatus,
  DEFAULT_OVERLAP_SECONDS,
  MAX_KEY_NAME_LENGTH,
  scopeProblem,
  statusOf,
} from '../api-keys/api-key.ts'
import { DEFAULT_KEY_APP_ID } from '../apps/app.ts'
import { DAY, type Instant, parseRfc3339, toRfc3339 } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { parseId } from '../ids.ts'
import { decodeCursor, encodeCursor } from '../paging.ts'
import { formToken, type Html, time } from './layout.ts'
import type { PageContext, PageKit, PageVariables } from './pages.ts'
import { words } from './words.ts'

const EXPIRY_PRESET_DAYS = [7, 30, 90]
/** An end this near stands out. */
const SOON = 14 * DAY
const OVERLAPS: [number, string][] = [
  [0, words.keys.overlapNow],
  [3600, words.keys.overlapHour],
  [DEFAULT_OVERLAP_SECONDS, words.keys.overlapDay],
  [7 * 86_400, words.keys.overlapWeek],
]

/** /keys: make, look at, rename, rotate and revoke keys. */
export function keyPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/keys', c => renderKeys(kit, c, {}))
  app.post('/keys', c => create(kit, c))
  app.post('/keys/:id/rename', c =>
    change(kit, c, async (userId, id, form) => {
      await kit.apiKeys.update(userId, id, { name: nameOf(form) })
      return c.redirect('/keys', 303)
    }),
  )
  app.post('/keys/:id/rotate', c =>
    change(kit, c, async (userId, id, form) => {
      const overlap = Number(form.get('overlap') ?? DEFAULT_OVERLAP_SECONDS)
      const seconds = OVERLAPS.some(([known]) => known === overlap) ? overlap : DEFAULT_OVERLAP_SECONDS
      const made = await kit.apiKeys.rotate(userId, id, seconds, kit.callerOf(c.req.raw, c.env))
      const until = seconds > 0 ? kit.clock.now() + seconds * 1000 : null
      return renderCreated(kit, c, made, until)
    }),
  )
  app.get('/keys/:id/revoke', c => renderRevoke(kit, c))
  app.post('/keys/:id/revoke', c =>
    change(kit, c, async (userId, id) => {
      const key = await kit.apiKeys.revoke(userId, id, kit.callerOf(c.req.raw, c.env))
      c.set('notice', words.keys.revokedDone(labelOf(key)))
      return renderKeys(kit, c, {})
    }),
  )
}

async function change(
  kit: PageKit,
  c: PageContext,
  work: (userId: string, id: string, form: URLSearchParams) => Promise<Response>,
): Promise<Response> {
  const { user } = kit.requireSession(c)
  const form = await kit.forms.read(c)
  try {
    return await work(user.id, idOf(c), form)
  } catch (error) {
    if (!(error instanceof KeywayError) || !SHOWN_ON_PAGE.has(error.code)) throw error
    return renderKeys(kit, c, { problem: error.message }, 409)
  }
}

const SHOWN_ON_PAGE = new Set([
  'key_limit_reached',
  'api_key_inactive',
  'api_key_replaced',
  'invalid_request',
])

function idOf(c: PageContext): string {
  const id = parseId(c.req.param('id') ?? '')
  if (!id) throw new KeywayError('not_found', words.errors.notFoundLead)
  return id
}

async function create(kit: PageKit, c: PageContext): Promise<Response> {
  const { user } = kit.requireSession(c)
  const form = await kit.forms.read(c)
  const wanted = readWanted(kit, form)
  if ('problem' in wanted) return renderKeys(kit, c, { problem: wanted.problem }, 400)
  try {
    const made = await kit.apiKeys.create(user.id, wanted, kit.callerOf(c.req.raw, c.env))
    return await renderCreated(kit, c, made, null)
  } catch (error) {
    if (!(error instanceof KeywayError) || !SHOWN_ON_PAGE.has(error.code)) throw error
    const problem = error.code === 'key_limit_reached' ? words.keys.limit(kit.maxActiveKeys) : error.message
    return renderKeys(kit, c, { problem }, 409)
  }
}

function readWanted(kit: PageKit, form: URLSearchParams) {
  const scopes = [...new Set(form.getAll('scope'))]
  const expiresAt = readExpiry(form, kit.clock.now())
  if (expiresAt === 'bad' || scopes.some(scope => scopeProblem(scope))) {
    return { problem: 'Choose an expiry date in the future, for example one month from now.' }
  }
  return { name: nameOf(form), scopes, expiresAt, appId: DEFAULT_KEY_APP_ID, allowedNetworks: [] }
}

function readExpiry(form: URLSearchParams, now: Instant): Instant | null | 'bad' {
  const choice = form.get('expiry') ?? 'never'
  if (choice === 'never') return null
  if (choice !== 'date') {
    const days = EXPIRY_PRESET_DAYS.find(preset => String(preset) === choice)
    return days ? now + days * DAY : 'bad'
  }
  const end = parseRfc3339(`${form.get('expiry_date')}T23:59:59Z`)
  return end !== null && end > now ? end : 'bad'
}

/** Null for an empty name; control characters are refused by the verb's own rule. */
function nameOf(form: URLSearchParams): string | null {
  const name = (form.get('name') ?? '').replace(/\p{Cc}/gu, ' ').trim()
  return name ? [...name].slice(0, MAX_KEY_NAME_LENGTH).join('') : null
}

function labelOf(key: ApiKey): string {
  return key.name ?? `${key.keyPrefix}…`
}

function renderCreated(
  kit: PageKit,
  c: PageContext,
  made: { key: string; apiKey: ApiKey },
  oldKeyUntil: Instant | null,
) {
  const { keys } = words
  const line = `KEYWAY_URL=${kit.publicUrl} KEYWAY_API_KEY=${made.key} npx -y ${kit.publicUrl}/sdk.tgz`
  const body = html`<div class="card">
<h1>${keys.created}</h1>
<p class="lead">${keys.createdLead}${oldKeyUntil ? ` ${keys.rotatedLead(toRfc3339(oldKeyUntil).slice(0, 16).replace('T', ' '))} UTC.` : ''}</p>
<div class="secret"><code id="new-key">${made.key}</code><button type="button" hidden data-copy="new-key" data-copied="${keys.copied}">${keys.copy}</button></div>
<h2>${keys.run}</h2>
<div class="secret"><pre class="line" id="run-line">${line}</pre><button type="button" class="quiet" hidden data-copy="run-line" data-copied="${keys.copied}">${keys.copy}</button></div>
<p class="live" role="status" data-waits-for="${made.apiKey.id}" data-live="${keys.live}">${keys.waiting}</p>
<p><a class="button" href="/keys">${keys.done}</a></p>
</div>`
  c.header('Referrer-Policy', 'no-referrer')
  return kit.render(c, { title: keys.created, current: '/keys' }, body, 201)
}

async function renderKeys(
  kit: PageKit,
  c: PageContext,
  said: { problem?: string },
  status = 200,
): Promise<Response> {
  const { user } = kit.requireSession(c)
  const filter = readFilter(c.req.query('status'))
  const slice = await kit.apiKeys.list(user.id, filter, {
    limit: 100,
    after: decodeCursor(c.req.query('cursor') ?? ''),
  })
  const now = kit.clock.now()
  const token = kit.forms.token(c)
  const body = html`<h1>${words.keys.title}</h1>
<p class="lead">${words.keys.lead}</p>
${createForm(token, slice.rows.length === 0 && !filter)}
<section class="card" aria-labelledby="list-title">
<div class="spread"><h2 id="list-title">${words.keys.title}</h2>${filterLinks(filter)}</div>
${slice.rows.length === 0 ? emptyList(filter) : html`<ul class="list">${slice.rows.map(key => keyRow(key, now, token))}</ul>`}
${slice.next ? html`<p><a href="/keys?${new URLSearchParams({ ...(filter ? { status: filter } : {}), cursor: encodeCursor(slice.next) })}">${words.keys.more}</a></p>` : ''}
</section>`
  const notice = c.req.query('welcome') ? words.verify.welcome : null
  return kit.render(
    c,
    { title: words.keys.title, current: '/keys', notice, problem: said.problem ?? null },
    body,
    status,
  )
}

function readFilter(text: string | undefined): ApiKeyStatus | null {
  return text === 'active' || text === 'expired' || text === 'revoked' ? text : null
}

function filterLinks(filter: ApiKeyStatus | null): Html {
  const { all, active, expired, revoked } = words.keys
  const links: [string, string, boolean][] = [
    ['/keys', all, filter === null],
    ['/keys?status=active', active, filter === 'active'],
    ['/keys?status=expired', expired, filter === 'expired'],
    ['/keys?status=revoked', revoked, filter === 'revoked'],
  ]
  return html`<nav class="filter" aria-label="Filter">${links.map(([href, label, here]) => html`<a href="${href}" ${here ? html`aria-current="true"` : ''}>${label}</a>`)}</nav>`
}

function emptyList(filter: ApiKeyStatus | null): Html {
  const { keys } = words
  return filter
    ? html`<p class="empty">${keys.emptyFilter}</p>`
    : html`<p class="empty"><strong>${keys.empty}</strong>${keys.emptyLead}</p>`
}

function createForm(token: string, open: boolean): Html {
  const { keys } = words
  return html`<section class="card">
<details ${open ? html`open` : ''}>
<summary><strong>${keys.create}</strong></summary>
<form method="post" action="/keys">
${formToken(token)}
<div class="field"><label for="name">${keys.name}</label><input id="name" name="name" maxlength="${MAX_KEY_NAME_LENGTH}" autocomplete="off" aria-describedby="name-hint"><p class="hint" id="name-hint">${keys.nameHint}</p></div>
<fieldset aria-describedby="scopes-hint"><legend>${keys.scopes}</legend>
${Object.entries(SCOPES).map(([scope, meaning]) => html`<div class="choice"><input type="checkbox" id="scope-${scope}" name="scope" value="${scope}"><label for="scope-${scope}"><code>${scope}</code><br><span class="quiet-text">${meaning}</span></label></div>`)}
<p class="hint" id="scopes-hint">${keys.noScopes}</p></fieldset>
<div class="row">
<div class="field"><label for="expiry">${keys.expiry}</label><select id="expiry" name="expiry" data-reveals="expiry-date-field" data-reveals-on="date"><option value="never">${keys.expiryNever}</option>${EXPIRY_PRESET_DAYS.map(days => html`<option value="${days}">${keys.expiryDays(days)}</option>`)}<option value="date">${keys.expiryDate}</option></select></div>
<div class="field" id="expiry-date-field"><label for="expiry_date">${keys.expiryDateLabel}</label><input id="expiry_date" name="expiry_date" type="date"></div>
<button>${keys.submit}</button>
</div>
</form>
</details>
</section>`
}

function keyRow(key: ApiKey, now: Instant, token: string): Html {
  const { keys } = words
  const { columns } = keys
  const status = statusOf(key, now)
  const soon = status === 'active' && key.expiresAt !== null && key.expiresAt < now + SOON
  return html`<li class="item">
<div><span class="name">${key.name ?? keys.unnamed}</span> <span class="tag ${status}">${keys[status]}</span>
${soon ? html` <span class="tag warn">${keys.soon}</span>` : ''}${status === 'active' && key.lastUsedAt === null ? html` <span class="tag">${keys.unused}</span>` : ''}${key.replacedBy ? html` <span class="tag">${keys.replaced}</span>` : ''}
<br><code>${key.keyPrefix}…</code><br><span class="quiet-text">${columns.access}: ${key.scopes.length ? key.scopes.join(', ') : keys.everything}</span></div>
<dl><dt>${columns.created}</dt><dd>${time(key.createdAt)}</dd><dt>${columns.used}</dt><dd>${key.lastUsedAt ? time(key.lastUsedAt) : keys.never}</dd><dt>${columns.expires}</dt><dd>${key.expiresAt ? time(key.expiresAt) : keys.never}</dd></dl>
${status === 'active' ? manage(key, token) : html`<span></span>`}
</li>`
}

function manage(key: ApiKey, token: string): Html {
  const { keys } = words
  const label = labelOf(key)
  return html`<div class="actions">
<details><summary aria-label="${keys.manage} ${label}">${keys.manage}</summary>
<form method="post" action="/keys/${key.id}/rename">${formToken(token)}<div class="field"><label for="name-${key.id}">${keys.name}</label><input id="name-${key.id}" name="name" maxlength="${MAX_KEY_NAME_LENGTH}" value="${key.name ?? ''}"></div><button class="quiet">${keys.rename}</button></form>
${
  key.replacedBy
    ? ''
    : html`<form method="post" action="/keys/${key.id}/rotate"><p class="hint">${keys.rotateLead}</p>${formToken(token)}<div class="field"><label for="overlap-${key.id}">${keys.overlap}</label><select id="overlap-${key.id}" name="overlap">${OVERLAPS.map(([seconds, words]) => html`<option value="${seconds}" ${seconds === DEFAULT_OVERLAP_SECONDS ? html`selected` : ''}>${words}</option>`)}</select></div><button class="quiet">${keys.rotate}</button></form>`
}
</details>
<a class="button danger" href="/keys/${key.id}/revoke" aria-label="${keys.revoke} ${label}">${keys.revoke}</a>
</div>`
}

async function renderRevoke(kit: PageKit, c: PageContext): Promise<Response> {
  const { keys } = words
  const { user } = kit.requireSession(c)
  const key = await kit.apiKeys.get(user.id, idOf(c))
  const connected = (await kit.agents.connections(user.id)).filter(agent => agent.keyId === key.id).length
  const body = html`<div class="card">
<h1>${keys.revokeTitle(labelOf(key))}</h1>
<p><code>${key.keyPrefix}…</code> · ${keys.columns.used}: ${key.lastUsedAt ? time(key.lastUsedAt) : keys.never}</p>
<p>${keys.revokeLead}</p>
<ul><li>${keys.revokeExchange}</li><li>${keys.revokeTokens}</li><li>${keys.revokeConnections(connected)}</li></ul>
<form class="row" method="post" action="/keys/${key.id}/revoke">${formToken(kit.forms.token(c))}<button class="danger">${keys.revoke}</button><a class="button quiet" href="/keys">${keys.cancel}</a></form>
</div>`
  return kit.render(c, { title: keys.revokeTitle(labelOf(key)), current: '/keys' }, body)
}
