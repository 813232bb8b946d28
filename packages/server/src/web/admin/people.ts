import { html, raw } from 'hono/html'
import { parseId } from '../../ids.ts'
import { decodeCursor, encodeCursor } from '../../paging.ts'
import { parseEmailAddress } from '../../users/email-address.ts'
import { USER_ROLES, type User, type UserRole, type UserStatus } from '../../users/user.ts'
import { searchOf } from '../../users/user-search.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { day, emptyList, type Html, pageHead } from '../layout.ts'
import { notFound } from '../problem.ts'
import { mayChange, renderAdmin, requireReader } from './acting.ts'
import { listFoot } from './list-foot.ts'
import { noAccountCard } from './sign-in-state.ts'
import { adminTexts } from './texts.ts'

const ROWS_PER_PAGE = 40
const STATUSES: readonly UserStatus[] = ['active', 'suspended', 'deleted']
const MAX_QUERY_LENGTH = 254

/** /admin/users: search and list people. */
export async function renderPeople(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { people } = adminTexts
  const query = (c.req.query('query') ?? '').trim().slice(0, MAX_QUERY_LENGTH)
  const status = STATUSES.find(each => each === c.req.query('status'))
  const role = USER_ROLES.find(each => each === c.req.query('role'))
  const slice = await findPeople(kit, query, status, role, c.req.query('cursor'))
  const total = query || status || role ? null : await kit.statistics.people()
  const foot = listFoot(c, {
    path: '/admin/users',
    filters: { query, status, role },
    rowCount: slice.rows.length,
    total,
    next: slice.next && { cursor: encodeCursor(slice.next) },
  })
  const unknownAddress = slice.rows.length === 0 ? parseEmailAddress(query) : null
  const token = mayChange(kit, signedIn) ? kit.forms.token(c) : null
  const noResultCard = unknownAddress
    ? await noAccountCard(kit, unknownAddress, token)
    : html`<section class="card flush">${emptyList(people.nobody, people.nobodyLead)}</section>`
  const body = html`${pageHead(people.title, people.lead)}
<form method="get" action="/admin/users" class="inline spaced" role="search"><div class="field"><label for="query">${people.query}</label><input id="query" name="query" value="${query}" autocomplete="off" spellcheck="false" maxlength="${MAX_QUERY_LENGTH}"></div><button>${people.search}</button></form>
<nav class="filter" aria-label="${people.columns.status}">${filterLinks(status, role)}</nav>
${slice.rows.length === 0 && !foot ? noResultCard : html`<section class="card flush">${peopleTable(slice.rows, signedIn.user.id)}${foot}</section>`}`
  return renderAdmin(kit, c, 'people', { title: people.title }, body)
}

async function findPeople(
  kit: PageKit,
  query: string,
  status: UserStatus | undefined,
  role: UserRole | undefined,
  cursor: string | undefined,
) {
  const id = parseId(query)
  if (id) {
    const user = await kit.users.get(id)
    return { rows: user ? [user] : [], next: null }
  }
  const page = { limit: ROWS_PER_PAGE, after: decodeCursor(cursor ?? '') }
  return kit.store.users.search({ by: searchOf(query), status, role }, page)
}

function filterLinks(status: UserStatus | undefined, role: UserRole | undefined): Html[] {
  const { people } = adminTexts
  const links: [string, string, boolean][] = [
    ['/admin/users', people.all, !status && !role],
    ...STATUSES.slice(1).map(
      each =>
        [`/admin/users?status=${each}`, adminTexts.statuses[each], status === each] as [
          string,
          string,
          boolean,
        ],
    ),
    ...USER_ROLES.slice(1).map(
      each =>
        [`/admin/users?role=${each}`, adminTexts.roles[each], role === each] as [string, string, boolean],
    ),
  ]
  return links.map(
    ([href, label, isCurrent]) =>
      html`<a href="${href}"${isCurrent ? raw(' aria-current="true"') : ''}>${label}</a>`,
  )
}

/** @param self the id of the person who views the page */
function peopleTable(users: readonly User[], self: string): Html {
  const { columns } = adminTexts.people
  return html`<table class="rows even"><thead><tr><th scope="col">${columns.who}</th><th scope="col">${columns.role}</th><th scope="col">${columns.status}</th><th scope="col">${columns.since}</th></tr></thead><tbody>
${users.map(
  user => html`<tr><th scope="row"><a class="name" href="/admin/users/${user.id}">${user.email ?? adminTexts.people.deleted}</a>${user.id === self ? youTag() : ''}${user.name ? html` <span class="quiet">${user.name}</span>` : ''}</th><td data-label="${columns.role}">${adminTexts.roles[user.role]}</td><td data-label="${columns.status}">${statusTag(user.status)}</td><td data-label="${columns.since}">${day(user.createdAt)}</td></tr>
`,
)}</tbody></table>`
}

export function statusTag(status: UserStatus): Html {
  const tagClass = { active: 'active', suspended: 'warn', deleted: 'revoked' }[status]
  return html`<span class="tag ${tagClass}">${adminTexts.statuses[status]}</span>`
}

/** A tag next to the name of the person who views the page. */
export function youTag(): Html {
  return html` <span class="tag you">${adminTexts.you}</span>`
}

/** The person whose id the path contains. @throws KeywayError `not_found` */
export async function personOf(kit: PageKit, c: PageContext): Promise<User> {
  const id = parseId(c.req.param('id') ?? '')
  const user = id && (await kit.users.get(id))
  if (!user) throw notFound()
  return user
}
