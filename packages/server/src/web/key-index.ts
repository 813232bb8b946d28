import type { Hono } from 'hono'
import { html, raw } from 'hono/html'
import { type ApiKeyStatus, type OwnedApiKey, statusOf } from '../api-keys/api-key.ts'
import { parseId } from '../ids.ts'
import { localization, texts } from '../languages/current.ts'
import { keyTable, labelOf } from './key-list.ts'
import { effectOnConnections } from './key-page.ts'
import {
  type FoundKeys,
  findKeys,
  KEY_SORTS,
  KEYS_PER_PAGE,
  type KeyView,
  MAX_SEARCHED_KEYS,
  pathOf,
  readView,
} from './key-search.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { formToken, type Html, pageHead } from './layout.ts'
import { stateHash, streamToSignedIn } from './signed-in-stream.ts'

/** Rows are counted up to this number, for which `1,000+` is shown. */
export const COUNT_LIMIT = 1000
/** The id of the form that the checkboxes of the list belong to. */
export const SELECTION_FORM_ID = 'selection'
/** Maximum number of keys that one request may revoke; a page of the list has fewer (KEYS_PER_PAGE). */
const MAX_SELECTED = 100

/** /keys: the list of keys, and revoking several of them. */
export function keyIndexPages(
  app: Hono<PageVariables>,
  kit: PageKit,
  renderFirstKey: (c: PageContext) => Html,
): void {
  app.get('/keys', c => renderKeys(kit, c, renderFirstKey))
  app.get('/keys/events', c => streamLiveKeys(kit, c))
  app.get('/keys/revoke', c => renderRevokeSelected(kit, c))
  app.post('/keys/revoke', async c => {
    const { user } = kit.requireSession(c)
    const form = kit.forms.read(c)
    const keys = await activeKeys(kit, user.id, form.getAll('id'))
    for (const key of keys) await kit.apiKeys.revoke(user.id, key.id, kit.callerOf(c.req.raw, c.env))
    return c.redirect('/keys?done=keys_revoked', 303)
  })
}

async function renderKeys(
  kit: PageKit,
  c: PageContext,
  renderFirstKey: (c: PageContext) => Html,
  problem: string | null = null,
): Promise<Response> {
  const { user } = kit.requireSession(c)
  const view = readView(c)
  const foundKeys = await findKeys(kit, user.id, view)
  const { status, query, after } = view
  const hasNoKeys = foundKeys.rows.length === 0 && !status && !query && !after
  const body = hasNoKeys ? renderFirstKey(c) : await renderList(kit, user.id, view, foundKeys)
  return kit.render(c, { title: texts.keys.title, current: '/keys', problem }, body, problem ? 400 : 200)
}

async function renderList(kit: PageKit, userId: string, view: KeyView, found: FoundKeys): Promise<Html> {
  const { keys } = texts
  const now = kit.clock.now()
  const { rows } = found
  const [connectedIds, counts] = await Promise.all([
    connectedKeyIds(kit, userId),
    kit.store.apiKeys.count(userId, now, COUNT_LIMIT),
  ])
  const isSelectable = rows.some(key => statusOf(key, now) === 'active')
  return html`${pageHead(keys.title, keys.lead, html`<a class="button" href="/keys/new">${keys.create}</a>`)}
${filterLinks(view, counts)}
${searchForm(view)}
${matchNote(found)}
<div class="selects"><section class="card flush" data-live-keys="/keys/events" data-says="${keys.connected}">${rows.length === 0 ? html`<p class="none">${view.query ? texts.keyList.none : keys.emptyFilter}</p>` : keyTable(rows, now, 'own', connectedIds, SELECTION_FORM_ID)}</section>
${isSelectable ? selectionForm('/keys/revoke') : ''}</div>
${pageLinks(view, found, counts)}`
}

type Counts = Record<ApiKeyStatus, number>

function sumOf({ active, expired, revoked }: Counts): number {
  return active + expired + revoked
}

export function formatBoundedCount(count: number): string {
  return `${localization().number(Math.min(count, COUNT_LIMIT))}${count >= COUNT_LIMIT ? '+' : ''}`
}

function filterLinks(view: KeyView, counts: Counts): Html {
  const { keys } = texts
  const entries: [ApiKeyStatus | null, string, number][] = [
    [null, keys.all, sumOf(counts)],
    ['active', keys.statuses.active, counts.active],
    ['expired', keys.statuses.expired, counts.expired],
    ['revoked', keys.statuses.revoked, counts.revoked],
  ]
  const links = entries.map(([status, label, count]) => {
    const currentMark = view.status === status ? raw(' aria-current="true"') : ''
    return html`<a href="${pathOf({ ...view, status, after: null, page: 1 })}"${currentMark}>${label} <span class="count">${formatBoundedCount(count)}</span></a>`
  })
  return html`<nav class="filter" aria-label="${keys.filter}">${links}</nav>`
}

function searchForm({ status, query, sort }: KeyView): Html {
  const { keyList } = texts
  const options = KEY_SORTS.map(
    each =>
      html`<option value="${each}"${each === sort ? raw(' selected') : ''}>${keyList.sorts[each]}</option>`,
  )
  return html`<form method="get" action="/keys" class="inline spaced" role="search">${status ? html`<input type="hidden" name="status" value="${status}">` : ''}<div class="field"><label class="unseen" for="query">${keyList.search}</label><input id="query" name="query" type="search" value="${query}" maxlength="100" placeholder="${keyList.searchExample}" autocomplete="off" spellcheck="false"></div><div class="field narrow"><label class="unseen" for="sort">${keyList.sort}</label><select id="sort" name="sort">${options}</select></div><button class="second">${keyList.search}</button></form>`
}

/**
 * A note with the number of matches, and a link to older keys if these were not searched. Empty for a list that is
 * sorted by creation and not searched.
 */
function matchNote({ matchCount, older }: FoundKeys): Html | '' {
  const { keyList } = texts
  if (matchCount === null) return ''
  const olderNote = older
    ? html` ${keyList.window({ count: MAX_SEARCHED_KEYS })} <a href="${pathOf(older)}">${keyList.windowOlder}</a>`
    : ''
  return html`<p class="quiet spaced" role="status">${keyList.found({ count: matchCount })}.${olderNote}</p>`
}

/** The form that the checkboxes of the rows belong to. script.js shows how many are ticked, and can tick all. */
export function selectionForm(action: string): Html {
  const { keyList } = texts
  return html`<form method="get" action="${action}" id="${SELECTION_FORM_ID}" class="bar" data-selection="${SELECTION_FORM_ID}"><output data-words="${keyList.selected({ count: '{}' })}"></output><button class="second small harm">${keyList.revoke}</button><button type="button" class="second small" data-selects="${SELECTION_FORM_ID}">${keyList.selectAll}</button></form>`
}

function pageLinks({ status, page, after }: KeyView, shown: FoundKeys, counts: Counts): Html | '' {
  const { keys, keyList } = texts
  const { next, previous, matchCount, rows } = shown
  if (!next && !previous) return ''
  const { number } = localization()
  const rowsBefore = matchCount === null && !after ? 0 : (page - 1) * KEYS_PER_PAGE
  const total = formatBoundedCount(matchCount ?? (status ? counts[status] : sumOf(counts)))
  const range = { from: number(rowsBefore + 1), to: number(rowsBefore + rows.length), total }
  const [previousLabel, nextLabel] =
    matchCount === null ? [keys.newest, keys.more] : [keyList.previous, keyList.next]
  return html`<nav class="spread" aria-label="${keys.pages}">${previous ? html`<a href="${pathOf(previous)}">${previousLabel}</a>` : ''}<span class="quiet">${keyList.range(range)}</span>${next ? html`<a href="${pathOf(next)}">${nextLabel}</a>` : ''}</nav>`
}

/** The page that asks to confirm the revocation of the selected active keys, or says that there are none. */
async function renderRevokeSelected(kit: PageKit, c: PageContext): Promise<Response> {
  const { user } = kit.requireSession(c)
  const { keys, keyList } = texts
  const selectedKeys = await activeKeys(kit, user.id, c.req.queries('id') ?? [])
  if (selectedKeys.length === 0) return renderNoneSelected(kit, c)
  const ids = new Set(selectedKeys.map(({ id }) => id))
  const connections = (await kit.agents.connections(user.id)).filter(({ keyId }) => ids.has(keyId))
  const count = selectedKeys.length
  const title = keyList.revokeTitle({ count })
  const body = html`<section class="card ask"><h1>${title}</h1>
<ul>${selectedKeys.map(key => html`<li><bdi>${labelOf(key)}</bdi>${key.name ? html` <code>${key.keyPrefix}…</code>` : ''}</li>`)}</ul>
<p>${keys.revokeLead}</p>
<ul><li>${keys.revokeExchange}</li><li>${keys.revokeTokens}</li><li>${effectOnConnections(connections.length)}</li></ul>
<form class="buttons" method="post" action="/keys/revoke">${formToken(kit.forms.token(c))}${selectedKeys.map(({ id }) => html`<input type="hidden" name="id" value="${id}">`)}<button class="danger">${keyList.revokeNow({ count })}</button><a class="button second" href="/keys">${keys.cancel}</a></form></section>`
  return kit.render(c, { title, current: '/keys' }, body)
}

function renderNoneSelected(kit: PageKit, c: PageContext): Response | Promise<Response> {
  const { keys, keyList } = texts
  const body = html`<p class="back"><a href="/keys">${keys.back}</a></p>`
  return kit.render(c, { title: keys.title, current: '/keys', problem: keyList.noneSelected }, body, 400)
}

/** The person's active keys with the first MAX_SELECTED of these ids; all other ids are left out. */
async function activeKeys(kit: PageKit, userId: string, idTexts: readonly string[]): Promise<OwnedApiKey[]> {
  const ids = [...new Set(idTexts.slice(0, MAX_SELECTED).map(parseId))].filter(id => id !== null)
  const keys = await kit.apiKeys.findMany(ids)
  const now = kit.clock.now()
  return ids
    .map(id => keys.get(id))
    .filter(key => key !== undefined)
    .filter(key => key.userId === userId && statusOf(key, now) === 'active')
}

async function connectedKeyIds(kit: PageKit, userId: string): Promise<ReadonlySet<string>> {
  return new Set((await kit.agents.connections(userId)).map(({ keyId }) => keyId))
}

/** Sends the ids of all of the person's keys with a live connection, whenever this set has changed. */
function streamLiveKeys(kit: PageKit, c: PageContext): Response {
  return streamToSignedIn(kit, c, async (send, shownHash) => {
    const ids = [...(await connectedKeyIds(kit, kit.requireSession(c).user.id))].sort().join(' ')
    const hash = stateHash(ids)
    if (hash !== shownHash) await send('live', ids, hash)
    return hash
  })
}
