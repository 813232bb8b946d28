import { html, raw } from 'hono/html'
import { type ApiKey, statusOf } from '../../api-keys/api-key.ts'
import type { KeySearch } from '../../api-keys/api-key-store.ts'
import { DAY, type Instant } from '../../clock.ts'
import { texts } from '../../languages/current.ts'
import { decodeCursor, encodeCursor } from '../../paging.ts'
import type { Policies } from '../../policies/policy.ts'
import { SELECTION_FORM_ID, selectionForm } from '../key-index.ts'
import { expiryText, lastUseText, selectAllBox, selectBox, statusTag } from '../key-list.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { ago, day, emptyList, type Html, pageHead } from '../layout.ts'
import { mayChange, renderAdmin, requireReader } from './acting.ts'
import { listFoot } from './list-foot.ts'
import { peopleById } from './person-links.ts'
import { MAX_SELECTED } from './selected-keys.ts'
import { adminTexts } from './texts.ts'

/** The choices of the filter for keys that were unused for at least this many days. */
const UNUSED_DAYS = [30, 90, 180, 365] as const
const DEFAULT_UNUSED_DAYS = 90
/** Maximum length of an external id, as in the API. */
const MAX_EXTERNAL_ID_LENGTH = 128
const PREFIX_LENGTH = 12
const EXPIRING_WITHIN = 14 * DAY

const FILTERS: Record<
  keyof typeof adminTexts.keys.filters,
  (now: Instant, policies: Policies, unusedFor: number) => KeySearch
> = {
  all: () => ({}),
  unused: (now, _policies, unusedFor) => ({ unusedSince: now - unusedFor }),
  endless: () => ({ neverExpires: true }),
  expiring: now => ({ expiresBefore: now + EXPIRING_WITHIN }),
  violating: (_now, policies) => ({ violating: policies }),
}
type Filter = keyof typeof FILTERS

/** /admin/keys: everybody's keys. */
export async function renderAllKeys(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { keys } = adminTexts
  const now = kit.clock.now()
  const query = (c.req.query('query') ?? '').trim().slice(0, MAX_EXTERNAL_ID_LENGTH)
  const unusedDays = UNUSED_DAYS.find(days => String(days) === c.req.query('days')) ?? DEFAULT_UNUSED_DAYS
  const filter = (Object.keys(FILTERS) as Filter[]).find(each => each === c.req.query('filter')) ?? 'all'
  const search = query ? searchOf(query) : FILTERS[filter](now, await kit.policies.read(), unusedDays * DAY)
  const page = { limit: MAX_SELECTED, after: decodeCursor(c.req.query('cursor') ?? '') }
  const slice = await kit.store.apiKeys.search(search, now, page)
  const foot = listFoot(c, {
    path: '/admin/keys',
    filters: { filter, query, days: String(unusedDays) },
    rowCount: slice.rows.length,
    next: slice.next && { cursor: encodeCursor(slice.next) },
  })
  const owners = await peopleById(
    kit,
    slice.rows.map(({ userId }) => userId),
  )
  const isSelectable = mayChange(kit, signedIn) && slice.rows.some(key => statusOf(key, now) === 'active')
  const tabs = (Object.keys(FILTERS) as Filter[]).map(
    each =>
      html`<a href="/admin/keys?filter=${each}"${each === filter && !query ? raw(' aria-current="true"') : ''}>${keys.filters[each]}</a>`,
  )
  const table =
    slice.rows.length === 0
      ? emptyList(keys.empty, keys.emptyLead)
      : keysTable(slice.rows, owners, now, isSelectable)
  const section = html`<section class="card flush">${table}${foot}</section>`
  const revokedCount = /^\d{1,3}$/.exec(c.req.query('revoked') ?? '')?.[0]
  const body = html`${pageHead(keys.title, keys.lead)}
<form method="get" action="/admin/keys" class="inline spaced" role="search"><div class="field"><label for="query">${keys.query}</label><input id="query" name="query" value="${query}" maxlength="${MAX_EXTERNAL_ID_LENGTH}" autocomplete="off" spellcheck="false"></div><button>${adminTexts.people.search}</button></form>
<nav class="filter" aria-label="${keys.title}">${tabs}</nav>
${filter === 'unused' && !query ? html`<nav class="filter" aria-label="${keys.filters.unused}">${UNUSED_DAYS.map(days => html`<a href="/admin/keys?filter=unused&amp;days=${days}"${days === unusedDays ? raw(' aria-current="true"') : ''}>${keys.unusedFor(days)}</a>`)}</nav>` : ''}
<div class="selects">${section}
${isSelectable ? selectionForm('/admin/keys/revoke') : ''}</div>`
  const notice = revokedCount ? keys.revoked(Number(revokedCount)) : undefined
  return renderAdmin(kit, c, 'keys', { title: keys.title, ...(notice && { notice }) }, body)
}

/** The search by the beginning of a key, or otherwise by the external id that the owner's own system gave the key. */
function searchOf(query: string): KeySearch {
  return query.startsWith('svc_') ? { prefixBeginning: query.slice(0, PREFIX_LENGTH) } : { externalId: query }
}

type Owners = Awaited<ReturnType<typeof peopleById>>

function keysTable(rows: readonly ApiKey[], owners: Owners, now: Instant, isSelectable: boolean): Html {
  const { columns } = adminTexts.keys
  const heads = [columns.key, columns.owner, columns.created, columns.used, columns.expires, columns.status]
  const cell = (label: string, content: Html | string) => html`<td data-label="${label}">${content}</td>`
  return html`<table class="rows keys all-keys"><thead><tr>${heads.map((head, at) => html`<th scope="col">${isSelectable && at === 0 ? selectAllBox(SELECTION_FORM_ID) : ''}${head}</th>`)}</tr></thead><tbody>
${rows.map(key => {
  const status = statusOf(key, now)
  const box = isSelectable && status === 'active' ? selectBox(key, SELECTION_FORM_ID) : ''
  return html`<tr class="key ${status}"><th scope="row">${box}<a class="name" href="/admin/keys/${key.id}">${key.name ?? texts.keys.unnamed}</a> <code>${key.keyPrefix}…</code></th>${cell(columns.owner, owners.link(key.userId))}${cell(columns.created, day(key.createdAt))}${cell(
    columns.used,
    lastUseText(key, status, now, at => ago(at, now)),
  )}${cell(columns.expires, expiryText(key, status, now))}${cell(columns.status, statusTag(key, status, owners.isSuspended(key.userId) ? adminTexts.statuses.suspended : null))}</tr>
`
})}</tbody></table>`
}
