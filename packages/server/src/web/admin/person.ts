import { html } from 'hono/html'
import { formatMoney } from '../../billing/money.ts'
import { newId } from '../../ids.ts'
import { texts } from '../../languages/current.ts'
import type { User } from '../../users/user.ts'
import { download } from '../account.ts'
import { describeClient } from '../client-name.ts'
import { keyTable } from '../key-list.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { day, type Html, pageHead, time } from '../layout.ts'
import { notFound } from '../problem.ts'
import { usageChart } from '../usage-chart.ts'
import { byOf, mayChange, renderAdmin, requireReader } from './acting.ts'
import { mailRow, suppressionRow } from './mails.ts'
import { personOf, statusTag } from './people.ts'
import { personForms } from './person-changes.ts'
import { adminTexts } from './texts.ts'

const ROWS = 10
/** Rows of each list after "Show more"; the API lists all of them in pages. */
const MORE_ROWS = 100

/**
 * /admin/users/:id: one account. Lists that show what a person does are read on request only, since reading them is
 * audited.
 */
export async function renderPerson(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { person } = adminTexts
  const user = await personOf(kit, c)
  const showsMore = c.req.query('rows') === 'more'
  const page = { limit: showsMore ? MORE_ROWS : ROWS, after: null }
  const token = mayChange(kit, signedIn) ? kit.forms.token(c) : null
  const [keys, sessions, events, balance, usage, consents] = await Promise.all([
    kit.apiKeys.list(user.id, null, page),
    kit.sessions.list(user.id, page),
    kit.securityEvents.list(user.id, page),
    kit.store.billing.balance(user.id),
    kit.usage.ofUser(user.id),
    kit.consents.list(user.id, page),
  ])
  // Reading is recorded, so a link on another site must not cause it: cookies are sent along with links.
  const isForeign = ['cross-site', 'same-site'].includes(c.req.header('sec-fetch-site') ?? '')
  const show = isForeign ? undefined : c.req.query('show')
  const by = byOf(kit, c, signedIn)
  const opened =
    show === 'ledger'
      ? await ledgerOf(kit, user, by)
      : show === 'mails'
        ? await mailsOf(kit, user, by, token)
        : null
  const { eventNames } = texts.account
  const more = ({ next }: { next: unknown }) =>
    next && !showsMore
      ? html`<p class="card-foot"><a href="/admin/users/${user.id}?rows=more">${person.more}</a></p>`
      : ''
  const body = html`${pageHead(user.email ?? adminTexts.people.deleted, `${user.role} · ${user.id}`, statusTag(user.status))}
<div class="columns">
<section class="card"><h2>${person.balance}</h2><p class="figure">$${formatMoney(balance)}</p><p class="quiet">${user.name ?? ''} ${day(user.createdAt)}</p>${user.deletesAt === null ? '' : html`<p><span class="tag warn">${person.deletes}</span> ${time(user.deletesAt)}</p>`}</section>
<section class="card"><h2>${person.ledger} · ${person.mails}</h2><p class="quiet">${person.recorded}</p><p class="buttons below"><a class="button second small" href="/admin/users/${user.id}?show=ledger">${person.ledger}</a> <a class="button second small" href="/admin/users/${user.id}?show=mails">${person.mails}</a> <a class="button second small" href="/admin/users/${user.id}/export" download>${person.export}</a> <a class="button second small" href="/admin/audit?subject=${user.id}">${adminTexts.nav.audit}<span class="unseen"> ${person.ofThis}</span></a></p></section>
</div>
${opened ?? ''}
${user.status !== 'deleted' && token ? personForms(user, token, newId(kit.clock.now())) : ''}
<section class="card"><h2>${texts.usage.title}</h2>${usageChart(usage)}</section>
<section class="card flush"><div class="card-head"><h2>${person.keys}</h2></div>${keys.rows.length > 0 ? keyTable(keys.rows, kit.clock.now(), 'admin') : none()}${more(keys)}</section>
<section class="card flush"><div class="card-head"><h2>${person.sessions}</h2></div>${list(sessions.rows.map(each => html`<li class="item"><div class="what"><span class="name">${each.client ? describeClient(each.client) : texts.sessions.unknownClient}</span><p><code>${each.network}</code> ${each.appId}</p></div><p class="when">${time(each.lastUsedAt)}</p></li>`))}${more(sessions)}</section>
<section class="card flush"><div class="card-head"><h2>${person.consents}</h2></div>${list(consents.rows.map(each => html`<li class="item"><div class="what"><span class="name">${each.name}</span><p><code>${each.scopes.join(' ')}</code></p></div><p class="when">${time(each.grantedAt)}</p></li>`))}${more(consents)}</section>
<section class="card flush"><div class="card-head"><h2>${person.events}</h2></div>${list(events.rows.map(each => html`<li class="item"><div class="what"><span class="name">${eventNames[each.type]}</span><p>${each.network ?? ''}</p></div><p class="when">${time(each.at)}</p></li>`))}${more(events)}</section>`
  return renderAdmin(kit, c, 'people', { title: user.email ?? adminTexts.people.deleted }, body)
}

function none(): Html {
  return html`<p class="card-foot quiet">${adminTexts.none}</p>`
}

function list(items: Html[]): Html {
  return items.length > 0 ? html`<ul class="list">${items}</ul>` : none()
}

async function ledgerOf(kit: PageKit, { id }: User, by: ReturnType<typeof byOf>): Promise<Html> {
  const read = () => kit.accounts.ledger(id, { limit: 50, after: null })
  const { rows } = await kit.administration.reading(id, 'ledger', by, read)
  return html`<section class="card flush"><div class="card-head"><h2>${adminTexts.person.ledger}</h2></div>${list(rows.map(entry => html`<li class="item"><div class="what"><span class="name">${entry.description}</span><p>${entry.appId ?? entry.kind}</p></div><p class="when">${time(entry.createdAt)}</p><p class="amount">${entry.amount > 0 ? '+' : ''}${formatMoney(entry.amount)}</p></li>`))}</section>`
}

async function mailsOf(
  kit: PageKit,
  { id, email }: User,
  by: ReturnType<typeof byOf>,
  token: string | null,
): Promise<Html> {
  const rows = await kit.administration.mailsOf(id, by)
  const suppression = email && (await kit.store.suppressions.find(email, kit.clock.now()))
  return html`<section class="card flush"><div class="card-head"><h2>${adminTexts.person.mails}</h2></div>${list([...(suppression ? [suppressionRow(suppression, token, `/admin/users/${id}`)] : []), ...rows.map(mail => mailRow(mail, token, `/admin/users/${id}`))])}</section>`
}

/** GET /admin/users/:id/export */
export async function exportPerson(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const user = await personOf(kit, c)
  // Reading is recorded, so a link on another site must not cause it.
  if (['cross-site', 'same-site'].includes(c.req.header('sec-fetch-site') ?? '')) throw notFound()
  const read = async () => kit.exportOf(user, 'operator')
  const body = await kit.administration.reading(user.id, 'export', byOf(kit, c, signedIn), read)
  return download(c, user, body)
}
