import { html, raw } from 'hono/html'
import { formatMoney, parseAmount } from '../../billing/money.ts'
import { newId, parseId } from '../../ids.ts'
import { USER_ROLES, type User } from '../../users/user.ts'
import { describeClient } from '../client-name.ts'
import { keyTable } from '../key-list.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { day, formToken, type Html, pageHead, time } from '../layout.ts'
import { notFound } from '../problem.ts'
import { texts } from '../texts.ts'
import { act, byOf, invalid, mayChange, renderAdmin, requireReader } from './acting.ts'
import { mailRow } from './mails.ts'
import { statusTag } from './people.ts'
import { adminTexts } from './texts.ts'

const ROWS = 10
const MAX_DESCRIPTION_LENGTH = 200
const MAX_REASON_LENGTH = 500

/** /admin/users/:id: one account. What shows what a person does is read on request, since reading it is recorded. */
export async function renderPerson(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { person } = adminTexts
  const user = await personOf(kit, c)
  const page = { limit: ROWS, after: null }
  const [keys, sessions, events, balance] = await Promise.all([
    kit.apiKeys.list(user.id, null, page),
    kit.sessions.list(user.id, page),
    kit.securityEvents.list(user.id, page),
    kit.store.billing.balance(user.id),
  ])
  // Reading is recorded, so a link on another site must not cause it: cookies are sent along with links.
  const isForeign = ['cross-site', 'same-site'].includes(c.req.header('sec-fetch-site') ?? '')
  const show = isForeign ? undefined : c.req.query('show')
  const by = byOf(kit, c, signedIn)
  const opened =
    show === 'ledger' ? await ledgerOf(kit, user, by) : show === 'mails' ? await mailsOf(kit, user, by) : null
  const { eventNames } = texts.account
  const body = html`${pageHead(user.email ?? adminTexts.people.deleted, `${user.role} · ${user.id}`, statusTag(user.status))}
<div class="columns">
<section class="card"><h2>${person.balance}</h2><p class="figure">$${formatMoney(balance)}</p><p class="quiet">${user.name ?? ''} ${day(user.createdAt)}</p></section>
<section class="card"><h2>${person.ledger} · ${person.mails}</h2><p class="quiet">${person.recorded}</p><p><a class="button second small" href="/admin/users/${user.id}?show=ledger">${person.ledger}</a> <a class="button second small" href="/admin/users/${user.id}?show=mails">${person.mails}</a> <a class="button second small" href="/admin/audit?subject=${user.id}">${adminTexts.nav.audit}</a></p></section>
</div>
${opened ?? ''}
${user.status !== 'deleted' && mayChange(kit, signedIn) ? changes(user, kit.forms.token(c), newId(kit.clock.now())) : ''}
<section class="card flush"><div class="card-head"><h2>${person.keys}</h2></div>${keys.rows.length > 0 ? keyTable(keys.rows, kit.clock.now(), 'admin') : none()}</section>
<section class="card flush"><div class="card-head"><h2>${person.sessions}</h2></div>${list(sessions.rows.map(each => html`<li class="item"><div class="what"><span class="name">${each.client ? describeClient(each.client) : texts.sessions.unknownClient}</span><p><code>${each.network}</code> ${each.appId}</p></div><p class="when">${time(each.lastUsedAt)}</p></li>`))}</section>
<section class="card flush"><div class="card-head"><h2>${person.events}</h2></div>${list(events.rows.map(each => html`<li class="item"><div class="what"><span class="name">${eventNames[each.type]}</span><p>${each.network ?? ''}</p></div><p class="when">${time(each.at)}</p></li>`))}</section>`
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

async function mailsOf(kit: PageKit, { id }: User, by: ReturnType<typeof byOf>): Promise<Html> {
  const rows = await kit.administration.mailsOf(id, by)
  return html`<section class="card flush"><div class="card-head"><h2>${adminTexts.person.mails}</h2></div>${list(rows.map(mail => mailRow(mail, null)))}</section>`
}

/** The forms, each for one act. */
function changes(user: User, token: string, once: string): Html {
  const { person } = adminTexts
  const form = (path: string, content: Html, button: Html) =>
    html`<form method="post" action="/admin/users/${user.id}/${path}" class="inline spaced">${formToken(token)}${content}${button}</form>`
  const why = (id: string, required: boolean) =>
    html`<div class="field"><label for="${id}">${adminTexts.reason}</label><input id="${id}" name="reason" maxlength="${MAX_REASON_LENGTH}" autocomplete="off"${required ? raw(' required') : ''}></div>`
  const isSuspended = user.status === 'suspended'
  return html`<section class="card"><h2>${person.change}</h2>
${form('role', html`<div class="field"><label for="role">${person.role}</label><select id="role" name="role" aria-describedby="role-hint">${USER_ROLES.map(role => html`<option${role === user.role ? raw(' selected') : ''}>${role}</option>`)}</select></div>`, html`<button class="second">${person.setRole}</button>`)}
<p class="hint" id="role-hint">${person.gains}</p>
${
  isSuspended
    ? form(
        'activate',
        why('activate-reason', false),
        html`<button class="second">${person.activate}</button>`,
      )
    : form(
        'suspend',
        why('suspend-reason', true),
        html`<button class="second harm">${person.suspend}</button>`,
      )
}
<p class="hint">${isSuspended ? '' : person.suspendLead}</p>
${form('credit', html`<input type="hidden" name="once" value="${once}"><div class="field"><label for="amount">${person.amount}</label><input id="amount" name="amount" inputmode="decimal" required autocomplete="off" maxlength="16"></div><div class="field"><label for="description">${person.description}</label><input id="description" name="description" required maxlength="${MAX_DESCRIPTION_LENGTH}" autocomplete="off"></div>`, html`<button class="second">${person.credit}</button>`)}
<div class="buttons">${form('end-sessions', html``, html`<button class="second small">${person.endSessions}</button>`)}${form('clear-limits', html``, html`<button class="second small">${person.clearLimits}</button>`)}</div>
<details><summary>${person.delete}</summary><p class="hint">${person.deleteLead}</p>${form('delete', html`<div class="field"><label for="confirm">${person.address}</label><input id="confirm" name="confirm" required autocomplete="off" spellcheck="false"></div>`, html`<button class="second harm">${person.delete}</button>`)}</details>
</section>`
}

async function personOf(kit: PageKit, c: PageContext): Promise<User> {
  const id = parseId(c.req.param('id') ?? '')
  const user = id && (await kit.users.get(id))
  if (!user) throw notFound()
  return user
}

/** POST /admin/users/:id/:act */
export async function changePerson(kit: PageKit, c: PageContext): Promise<Response> {
  const id = parseId(c.req.param('id') ?? '') ?? ''
  const work = ACTS[c.req.param('act') ?? '']
  if (!work) throw notFound()
  return act(kit, c, `/admin/users/${id}`, async (form, by) => {
    const user = await personOf(kit, c)
    await work(kit, user, form, by(form.get('reason') ?? undefined))
  })
}

type Act = (kit: PageKit, user: User, form: URLSearchParams, by: ReturnType<typeof byOf>) => Promise<unknown>

const ACTS: { [name: string]: Act | undefined } = Object.assign(Object.create(null), {
  role: (kit, { id }, form, by) => {
    const role = USER_ROLES.find(each => each === form.get('role'))
    if (!role) throw notFound()
    return kit.users.setRole(id, role, by)
  },
  suspend: (kit, { id }, _form, by) => {
    if (by.reason === null) throw invalid(adminTexts.person.needsReason)
    return kit.users.suspend(id, by)
  },
  activate: (kit, { id }, _form, by) => kit.users.activate(id, by),
  'end-sessions': (kit, { id }, _form, by) => kit.sessions.endAll(id, by),
  'clear-limits': async (kit, { email }, _form, by) => {
    if (email) await kit.magicLinks.clearLimits(email, by)
  },
  credit: (kit, { id }, form, by) => {
    const amount = parseAmount((form.get('amount') ?? '').trim())
    const description = (form.get('description') ?? '').trim()
    const isClean = description.isWellFormed() && !/\p{Cc}/u.test(description)
    if (amount === null || !isClean || description === '' || [...description].length > MAX_DESCRIPTION_LENGTH)
      throw invalid(adminTexts.person.badAmount)
    const once = parseId(form.get('once') ?? '')
    if (!once) throw notFound()
    return kit.credits.grant({ userId: id, amount, description }, `page:${once}`, by)
  },
  delete: (kit, user, form, by) => {
    if (user.email === null || form.get('confirm')?.trim().toLowerCase() !== user.email)
      throw invalid(adminTexts.person.mismatch)
    return kit.users.delete(user.id, by)
  },
} satisfies Record<string, Act>)
