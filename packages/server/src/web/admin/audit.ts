import { html, raw } from 'hono/html'
import { AUDIT_TYPES, type AuditEvent, isAuditType } from '../../audit/audit-event.ts'
import { auditExport } from '../../audit/audit-export.ts'
import { AUDIT_CSV_HEADER, auditCsvLine, auditEventObject } from '../../audit/audit-object.ts'
import type { AuditFilter } from '../../audit/audit-store.ts'
import { DAY, type Instant } from '../../clock.ts'
import { KeywayError } from '../../errors.ts'
import { parseId } from '../../ids.ts'
import { decodeCursor, encodeCursor } from '../../paging.ts'
import { parseEmailAddress } from '../../users/email-address.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { emptyList, type Html, pageHead } from '../layout.ts'
import { notFound } from '../problem.ts'
import { renderAdmin, requireReader } from './acting.ts'
import { auditRows } from './audit-row.ts'
import { listFoot } from './list-foot.ts'
import { adminTexts } from './texts.ts'

const ROWS_PER_PAGE = 40
/** The format of an id of any kind, or an address. */
const ID_OR_ADDRESS = /^[!-~]{1,254}$/
/** The id of no account: the filter for an address without an account, or an actor that is no id. No row matches it. */
const NOBODY = '00000000-0000-0000-0000-000000000000'
const DATE_EXAMPLE = 'YYYY-MM-DD'
const FORMATS = {
  csv: { type: 'text/csv; charset=utf-8; header=present', head: AUDIT_CSV_HEADER, toLine: auditCsvLine },
  jsonl: {
    type: 'application/x-ndjson',
    head: '',
    toLine: (event: AuditEvent) => `${JSON.stringify(auditEventObject(event))}\n`,
  },
}

/** /admin/audit: what administrators did. */
export async function renderAudit(kit: PageKit, c: PageContext): Promise<Response> {
  requireReader(kit, c)
  const { audit } = adminTexts
  const filters = typedFiltersOf(c)
  const page = { limit: ROWS_PER_PAGE, after: decodeCursor(c.req.query('cursor') ?? '') }
  const { rows, next } = await kit.store.audit.list(await filterOf(kit, filters), page)
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ''))
  const foot = listFoot(c, {
    path: '/admin/audit',
    filters,
    rowCount: rows.length,
    next: next && { cursor: encodeCursor(next) },
  })
  const body = html`${pageHead(audit.title, audit.lead)}
${filterForm(await withAddresses(kit, filters))}
<section class="card flush">${rows.length > 0 ? html`<ul class="list">${await auditRows(kit, rows)}</ul>` : emptyList(audit.empty, audit.emptyLead)}${foot}</section>
<p>${audit.export} <a href="/admin/audit/export.csv?${query.toString()}" download>CSV</a> · <a href="/admin/audit/export.jsonl?${query.toString()}" download>JSON</a></p>`
  return renderAdmin(kit, c, 'audit', { title: audit.title }, body)
}

/** The filters as text; empty for one that is not set. */
type TypedFilters = Record<'actor' | 'subject' | 'type' | 'from' | 'to', string>

/** The submitted filters, without those that have an invalid format. */
function typedFiltersOf(c: PageContext): TypedFilters {
  const text = (name: string) => (c.req.query(name) ?? '').trim().toLowerCase()
  const idOrAddress = (name: string) => (ID_OR_ADDRESS.test(text(name)) ? text(name) : '')
  const date = (name: string) => (dayOf(text(name)) === null ? '' : text(name))
  const type = text('type')
  return {
    actor: idOrAddress('actor'),
    subject: idOrAddress('subject'),
    type: isAuditType(type) ? type : '',
    from: date('from'),
    to: date('to'),
  }
}

async function filterOf(
  kit: PageKit,
  { actor, subject, type, from, to }: TypedFilters,
): Promise<AuditFilter> {
  const lastDay = dayOf(to)
  return {
    ...(actor && { actor: parseId(await idOf(kit, actor)) ?? NOBODY }),
    ...(subject && { subject: await idOf(kit, subject) }),
    ...(isAuditType(type) && { type }),
    from: dayOf(from) ?? undefined,
    to: lastDay === null ? undefined : lastDay + DAY,
  }
}

/** The filters as the form shows them: an account by its address, which is shorter than its id. */
async function withAddresses(kit: PageKit, filters: TypedFilters): Promise<TypedFilters> {
  const ids = [filters.actor, filters.subject].map(parseId).filter(id => id !== null)
  const people = ids.length > 0 ? await kit.store.users.findMany([...new Set(ids)]) : []
  const addressOrText = (who: string) => people.find(({ id }) => id === who)?.email ?? who
  return { ...filters, actor: addressOrText(filters.actor), subject: addressOrText(filters.subject) }
}

/** The id of the account with this address, or NOBODY if there is none. A text without `@` is taken as an id. */
async function idOf(kit: PageKit, who: string): Promise<string> {
  if (!who.includes('@')) return who
  const email = parseEmailAddress(who)
  return (email && (await kit.store.users.findByEmail(email))?.id) ?? NOBODY
}

/** The start of a day in UTC; null if the text is not a date. */
function dayOf(text: string): Instant | null {
  const start = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  return Number.isNaN(start) ? null : start
}

function filterForm({ actor, subject, type, from, to }: TypedFilters): Html {
  const { audit } = adminTexts
  const field = (name: keyof TypedFilters, value: string, example: string, kind = '') =>
    html`<div class="field ${kind}"><label for="${name}">${audit.fields[name]}</label><input id="${name}" name="${name}" value="${value}" placeholder="${example}" autocomplete="off" spellcheck="false"></div>`
  const types = (Object.keys(AUDIT_TYPES) as (keyof typeof AUDIT_TYPES)[]).map(
    each =>
      html`<option value="${each}"${each === type ? raw(' selected') : ''}>${audit.types[each]}</option>`,
  )
  return html`<form method="get" action="/admin/audit" class="inline spaced" role="search">${field('subject', subject, audit.whoExample, 'who-or-what')}${field('actor', actor, audit.whoExample, 'who-or-what')}<div class="field"><label for="type">${audit.fields.type}</label><select id="type" name="type"><option value="">${audit.any}</option>${types}</select></div>${field('from', from, DATE_EXAMPLE)}${field('to', to, DATE_EXAMPLE)}<button>${audit.filter}</button></form>`
}

/** /admin/audit/:file: all matching rows, oldest first. */
export async function exportAudit(kit: PageKit, c: PageContext): Promise<Response> {
  requireReader(kit, c)
  const file = c.req.param('file') ?? ''
  const format = file === 'export.csv' ? FORMATS.csv : file === 'export.jsonl' ? FORMATS.jsonl : null
  if (!format) throw notFound()
  const filter = await filterOf(kit, typedFiltersOf(c))
  const body = auditExport({
    read: (after, limit) => kit.store.audit.after(after, filter, limit),
    reauthenticate: () => assertMayStillRead(kit, c),
    ...format,
  })
  const headers = {
    'Content-Type': format.type,
    'Content-Disposition': `attachment; filename="audit-${file}"`,
  }
  return c.body(body, 200, headers)
}

/** Rejects if the reader's session or role has ended; called repeatedly while a response is streamed. */
export async function assertMayStillRead(kit: PageKit, c: PageContext): Promise<void> {
  const cookie = kit.cookies.session(c)
  const signedIn = cookie ? await kit.sessions.authenticateCookie(cookie) : null
  if (!signedIn || signedIn.user.role === 'user')
    throw new KeywayError('forbidden', 'The right to read this has ended.')
}
