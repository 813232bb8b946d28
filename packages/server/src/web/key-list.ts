import { html } from 'hono/html'
import { type ApiKey, type ApiKeyStatus, statusOf } from '../api-keys/api-key.ts'
import { DAY, type Instant } from '../clock.ts'
import { texts } from '../languages/current.ts'
import { describeClient } from './client-name.ts'
import { ago, day, type Html } from './layout.ts'
import { richText } from './rich.ts'

/** A key that was never used is highlighted when it is older than this. */
const UNUSED_AFTER = 7 * DAY
/** Keys that expire within this time are highlighted. */
const EXPIRES_SOON_WITHIN = 14 * DAY
/** Maximum number of scopes shown in a row; the key's own page shows all. */
const SHOWN_SCOPES = 3
const MAX_CLIENT_LENGTH = 24

/**
 * A table with one row per key. Narrow screens show each row as a block of values with labels.
 *
 * @param place for an `admin`, links lead to the pages of administrators, and rows have neither a revoke link nor the
 *   dot of a connected key
 * @param connectedIds ids of keys with a live connection
 * @param selectFor the id of the form that the checkboxes of active keys belong to; null for no checkboxes
 * @param refusedStatus the status to show instead of "active" if keys are refused because their owner is suspended
 */
export function keyTable(
  keys: readonly ApiKey[],
  now: Instant,
  place: 'own' | 'admin' = 'own',
  connectedIds: ReadonlySet<string> = new Set(),
  selectFor: string | null = null,
  refusedStatus: string | null = null,
): Html {
  const { columns } = texts.keys
  const heads = [columns.key, columns.access, columns.created, columns.used, columns.expires, columns.status]
  return html`<table class="rows keys"><thead><tr>${heads.map((head, index) => html`<th scope="col">${selectFor && index === 0 ? selectAllBox(selectFor) : ''}${head}</th>`)}<th scope="col"><span class="unseen">${columns.action}</span></th></tr></thead><tbody>
${keys.map(key => row(key, now, place, connectedIds.has(key.id), selectFor, refusedStatus))}
</tbody></table>`
}

function row(
  key: ApiKey,
  now: Instant,
  place: 'own' | 'admin',
  isLive: boolean,
  selectFor: string | null,
  refusedStatus: string | null,
): Html {
  const { keys } = texts
  const { columns } = keys
  const status = statusOf(key, now)
  const cell = (label: string, content: Html | string) => html`<td data-label="${label}">${content}</td>`
  return html`<tr class="key ${status}"><th scope="row">${selectFor && status === 'active' ? selectBox(key, selectFor) : ''}${place === 'own' && status === 'active' ? connectionDot(isLive) : ''}<a class="name" href="${place === 'own' ? '' : '/admin'}/keys/${key.id}">${key.name === null ? html`<span class="quiet">${keys.unnamed}</span>` : html`<bdi>${key.name}</bdi>`}</a> <code>${key.keyPrefix}…</code></th>${accessCell(key, place)}${cell(columns.created, day(key.createdAt))}${cell(columns.used, html`${lastUseText(key, status, now, at => ago(at, now))}${lastUseOrigin(key)}`)}${expiryCell(key, status, now)}<td>${statusTag(key, status, refusedStatus)}</td><td class="end">${status === 'active' && place === 'own' ? revokeLink(key) : ''}</td></tr>
`
}

/** A checkbox that selects all rows; shown only if scripts run. */
export function selectAllBox(form: string): Html {
  return html`<input type="checkbox" class="select" data-selects="${form}" aria-label="${texts.keyList.selectAll}">`
}

/** The checkbox that selects a key, in the form with this id. */
export function selectBox(key: ApiKey, form: string): Html {
  return html`<input type="checkbox" class="select" name="id" value="${key.id}" form="${form}" aria-label="${texts.keyList.select({ name: labelOf(key) })}">`
}

/**
 * A dot that shows whether the key has a connection. script.js updates it, and takes the key's id from the link to the
 * key's page, which must therefore follow the dot.
 */
function connectionDot(isLive: boolean): Html {
  const { connected } = texts.keys
  if (!isLive) return html`<span class="live dot" data-dot></span>`
  return html`<span class="live dot on" data-dot title="${connected}"><span class="unseen">${connected}</span></span>`
}

function revokeLink(key: ApiKey): Html {
  return html`<a class="revoke" href="/keys/${key.id}/revoke">${texts.keys.revoke}<span class="unseen"> ${labelOf(key)}</span></a>`
}

export function labelOf(key: Pick<ApiKey, 'name' | 'keyPrefix'>): string {
  return key.name ?? `${key.keyPrefix}…`
}

/** What a key may do, in the words of the form that creates keys; `title` has the names of all scopes. */
function accessCell({ scopes }: ApiKey, place: 'own' | 'admin'): Html {
  const { everything, everythingOfOwner, moreScopes, columns } = texts.keys
  if (scopes === null)
    return html`<td data-label="${columns.access}">${place === 'own' ? everything : everythingOfOwner}</td>`
  const shownScopes = scopes.slice(0, SHOWN_SCOPES)
  const hiddenCount = scopes.length - SHOWN_SCOPES
  return html`<td data-label="${columns.access}" title="${scopes.join(' ')}">${shownScopes.map(scopeInWords).join(', ')}${hiddenCount > 0 ? ` ${moreScopes({ count: hiddenCount })}` : ''}</td>`
}

/** The description of a scope, or its name: scopes that Keyway does not know, which other services check, have none. */
function scopeInWords(scope: string): string {
  const words: Record<string, string | undefined> = texts.keyForm.scopeWords
  return words[scope] ?? scope
}

export function lastUseText(
  key: ApiKey,
  status: ApiKeyStatus,
  now: Instant,
  show: (at: Instant) => Html,
): Html | string {
  if (key.lastUsedAt) return show(key.lastUsedAt)
  const isUnused = status === 'active' && key.createdAt < now - UNUSED_AFTER
  return isUnused ? html`<span class="stands-out">${texts.keys.never}</span>` : texts.keys.never
}

/** The network and the client of the last use; empty if unknown. The client's name is cut to fit into the row. */
function lastUseOrigin({ lastUsedFrom: from }: ApiKey): Html | '' {
  if (!from) return ''
  return html`<span class="from quiet">${from.network}${from.client ? ` · ${describeClient(from.client).slice(0, MAX_CLIENT_LENGTH)}` : ''}</span>`
}

/** The expiry of a key, or the date on which it was revoked. */
function expiryCell(key: ApiKey, status: ApiKeyStatus, now: Instant): Html {
  const { columns } = texts.keys
  if (key.revokedAt === null)
    return html`<td data-label="${columns.expires}">${expiryText(key, status, now)}</td>`
  return html`<td>${richText(texts.units.labelled, { label: columns.revoked, value: day(key.revokedAt) })}</td>`
}

export function expiryText(key: ApiKey, status: ApiKeyStatus, now: Instant): Html | string {
  if (key.expiresAt === null) return texts.keys.never
  const isSoon = status === 'active' && key.expiresAt < now + EXPIRES_SOON_WITHIN
  return isSoon
    ? html`<span class="stands-out">${day(key.expiresAt)} <span class="tag warn">${texts.keys.soon}</span></span>`
    : day(key.expiresAt)
}

/** @param refusedStatus see `keyTable` */
export function statusTag(key: ApiKey, status: ApiKeyStatus, refusedStatus: string | null = null): Html {
  const { statuses, replaced } = texts.keys
  if (refusedStatus !== null && status === 'active')
    return html`<span class="tag warn">${refusedStatus}</span>`
  return html`<span class="tag ${status}">${statuses[status]}</span>${key.replacedBy && status === 'active' ? html` <span class="tag warn">${replaced}</span>` : ''}`
}
