import { html, raw } from 'hono/html'
import { type ApiKey, statusOf } from '../../api-keys/api-key.ts'
import type { KeySearch } from '../../api-keys/api-key-store.ts'
import { DAY, type Instant } from '../../clock.ts'
import { parseId } from '../../ids.ts'
import { texts } from '../../languages/current.ts'
import { decodeCursor, encodeCursor } from '../../paging.ts'
import type { Policies } from '../../policies/policy.ts'
import { expires, lastUsed, statusTag } from '../key-list.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { day, empty, formToken, type Html, pageHead } from '../layout.ts'
import { act, invalid, mayChange, renderAdmin, requireReader } from './acting.ts'
import { type PersonLink, personLinks } from './person-links.ts'
import { adminTexts } from './texts.ts'

const ROWS = 40
/** Days without a use, of which one is chosen. */
const UNUSED_DAYS = [30, 90, 180, 365] as const
const DEFAULT_UNUSED_DAYS = 90
/** As in the API. */
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
  const typed = (c.req.query('query') ?? '').trim().slice(0, MAX_EXTERNAL_ID_LENGTH)
  const unused = UNUSED_DAYS.find(days => String(days) === c.req.query('days')) ?? DEFAULT_UNUSED_DAYS
  const filter = (Object.keys(FILTERS) as Filter[]).find(each => each === c.req.query('filter')) ?? 'all'
  const wanted = typed ? searchOf(typed) : FILTERS[filter](now, await kit.policies.read(), unused * DAY)
  const page = { limit: ROWS, after: decodeCursor(c.req.query('cursor') ?? '') }
  const slice = await kit.store.apiKeys.search(wanted, now, page)
  const more =
    slice.next &&
    new URLSearchParams({ filter, query: typed, days: String(unused), cursor: encodeCursor(slice.next) })
  const owner = await personLinks(
    kit,
    slice.rows.map(({ userId }) => userId),
  )
  const token = mayChange(kit, signedIn) ? kit.forms.token(c) : null
  const tabs = (Object.keys(FILTERS) as Filter[]).map(
    each =>
      html`<a href="/admin/keys?filter=${each}"${each === filter && !typed ? raw(' aria-current="true"') : ''}>${keys.filters[each]}</a>`,
  )
  const table =
    slice.rows.length === 0 ? empty(keys.empty, keys.emptyLead) : keysTable(slice.rows, owner, now, token)
  const section = html`<section class="card flush">${table}${more ? html`<p class="card-foot"><a href="/admin/keys?${more.toString()}">${adminTexts.older}</a></p>` : ''}</section>`
  const revoked = /^\d{1,3}$/.exec(c.req.query('revoked') ?? '')?.[0]
  const body = html`${pageHead(keys.title, keys.lead)}
<form method="get" action="/admin/keys" class="inline spaced" role="search"><div class="field"><label for="query">${keys.query}</label><input id="query" name="query" value="${typed}" maxlength="${MAX_EXTERNAL_ID_LENGTH}" autocomplete="off" spellcheck="false"></div><button>${adminTexts.people.search}</button></form>
<nav class="filter" aria-label="${keys.title}">${tabs}</nav>
${filter === 'unused' && !typed ? html`<nav class="filter" aria-label="${keys.filters.unused}">${UNUSED_DAYS.map(days => html`<a href="/admin/keys?filter=unused&amp;days=${days}"${days === unused ? raw(' aria-current="true"') : ''}>${keys.unusedFor(days)}</a>`)}</nav>` : ''}
${token && slice.rows.length > 0 ? selection(token, section) : section}`
  const notice = revoked ? keys.revoked(Number(revoked)) : undefined
  return renderAdmin(kit, c, 'keys', { title: keys.title, ...(notice && { notice }) }, body)
}

/** A key's first characters, or else the id that its owner's own system gave it. */
function searchOf(typed: string): KeySearch {
  return typed.startsWith('svc_') ? { prefixBeginning: typed.slice(0, PREFIX_LENGTH) } : { externalId: typed }
}

/** The form around the table that revokes what is selected. */
function selection(token: string, section: Html): Html {
  return html`<form method="post" action="/admin/keys/revoke">${formToken(token)}
${section}
<div class="inline spaced"><div class="field"><label for="reason">${adminTexts.reason}</label><input id="reason" name="reason" maxlength="500" autocomplete="off"></div><button class="second harm">${adminTexts.keys.revoke}</button></div></form>`
}

function keysTable(rows: readonly ApiKey[], owner: PersonLink, now: Instant, token: string | null): Html {
  const { columns, select } = adminTexts.keys
  return html`<table class="rows even"><thead><tr>${token ? html`<th scope="col" class="tick"><span class="unseen">${select}</span></th>` : ''}<th scope="col">${columns.key}</th><th scope="col">${columns.owner}</th><th scope="col">${columns.used}</th><th scope="col">${columns.expires}</th><th scope="col">${columns.status}</th></tr></thead><tbody>
${rows.map(key => {
  const status = statusOf(key, now)
  const label = key.name ?? texts.keys.unnamed
  return html`<tr>${token ? html`<td>${status === 'active' ? html`<input type="checkbox" name="key" value="${key.id}" aria-label="${select} ${key.keyPrefix}">` : ''}</td>` : ''}<th scope="row"><a class="name" href="/admin/keys/${key.id}">${label}</a> <code>${key.keyPrefix}…</code></th><td data-label="${columns.owner}">${owner(key.userId)}</td><td data-label="${columns.used}">${lastUsed(key, status, now, day)}</td><td data-label="${columns.expires}">${expires(key, status, now)}</td><td data-label="${columns.status}">${statusTag(key, status)}</td></tr>
`
})}</tbody></table>`
}

export function revokeKeys(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/keys', async (form, by) => {
    const ids = form
      .getAll('key')
      .slice(0, ROWS)
      .flatMap(text => parseId(text) ?? [])
    if (ids.length === 0) throw invalid(adminTexts.keys.nothing)
    const who = by(form.get('reason') ?? undefined)
    const known = await kit.apiKeys.findMany(ids)
    for (const id of known.keys()) await kit.apiKeys.revokeById(id, who)
    return c.redirect(`/admin/keys?revoked=${known.size}`, 303)
  })
}
