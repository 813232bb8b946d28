import { html } from 'hono/html'
import type { ActedBy } from '../../audit/audit.ts'
import { newId } from '../../ids.ts'
import { texts } from '../../languages/current.ts'
import type { User } from '../../users/user.ts'
import { download } from '../account.ts'
import { ledgerTable } from '../account-balance.ts'
import { dollars } from '../balance-chart.ts'
import { copyableValue } from '../copyable.ts'
import { eventRows } from '../events.ts'
import { keyTable } from '../key-list.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { ago, day, type Html, time } from '../layout.ts'
import { notFound } from '../problem.ts'
import { usageChart } from '../usage-chart.ts'
import { actedByOf, backTo, isFromOtherSite, mayChange, renderAdmin, requireReader } from './acting.ts'
import { assertMayStillRead } from './audit.ts'
import { dangerCard } from './danger.ts'
import { lastAct } from './last-act.ts'
import { mailRow } from './mails.ts'
import { personOf, statusTag, youTag } from './people.ts'
import { dangerousActsOf, selfCard, supportCard, suspensionCard } from './person-forms.ts'
import { sessionsCard } from './person-sessions.ts'
import { obstaclesOf, type SignInState, signInFacts, signInState } from './sign-in-state.ts'
import { adminTexts } from './texts.ts'

const ROWS_PER_PAGE = 10
/** Maximum number of rows of each list after "Show more"; the API lists all of them. */
const MORE_ROWS = 100
const LEDGER_ROWS = 50
const LANGUAGE_NAMES = new Intl.DisplayNames(['en'], { type: 'language' })

/** /admin/users/:id: one account. Ledger and mails are read on request only, since reading them is audited. */
export async function renderPerson(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { person, people } = adminTexts
  const user = await personOf(kit, c)
  const showsMore = c.req.query('rows') === 'more'
  const page = { limit: showsMore ? MORE_ROWS : ROWS_PER_PAGE, after: null }
  const isDeleted = user.status === 'deleted'
  const token = mayChange(kit, signedIn) && !isDeleted ? kit.forms.token(c) : null
  const now = kit.clock.now()
  const isSelf = user.id === signedIn.user.id
  const returnPath = `/admin/users/${user.id}`
  const [keys, sessions, events, balance, usage, consents, signIn, statusAct, activeKeys] = await Promise.all(
    [
      kit.apiKeys.list(user.id, null, page),
      kit.sessions.list(user.id, page),
      kit.securityEvents.list(user.id, page),
      kit.store.billing.balance(user.id),
      kit.usage.ofUser(user.id),
      kit.consents.list(user.id, page),
      user.email && signInState(kit, user.email),
      user.status === 'active' ? null : lastAct(kit, user.id, `user.${user.status}`),
      token ? kit.store.apiKeys.countActive(user.id, now, 1) : 0,
    ],
  )
  // Reading is audited, so a link on another site must not cause a reading: browsers send the cookies with it.
  const auditedList = isFromOtherSite(c)
    ? ''
    : await readAuditedList(kit, c, user, actedByOf(kit, c, signedIn), token)
  const moreLink = ({ next }: { next: unknown }) =>
    next && !showsMore
      ? html`<p class="card-foot"><a href="${returnPath}?rows=more">${person.more}</a></p>`
      : ''
  const title = user.email ?? people.deleted
  const body = html`${backTo('people')}
<div class="head"><div><h1>${title}</h1><p class="lead">${statusTag(user.status)}${isSelf ? youTag() : ''} ${user.name ? html`${user.name} · ` : ''}${copyableValue('person-id', user.id)}</p></div></div>
${isDeleted ? html`<p class="banner warning">${person.deletedLead} ${statusAct ? html`${person.deletedBy} ${statusAct}` : person.deletedByPerson}</p>` : ''}
${user.status === 'suspended' ? suspensionCard(user, statusAct, token) : ''}
${user.deletesAt === null ? '' : html`<p class="banner warning">${person.deletes} ${time(user.deletesAt)}</p>`}
${signIn ? obstaclesOf(signIn, token, returnPath) : ''}
<section class="card"><dl class="facts">${factsOf(user, dollars(balance), signIn || null)}</dl>${auditedListLinks(user)}</section>
${auditedList}
${isDeleted ? '' : sessionsCard(kit, user, sessions.rows, { token, current: isSelf ? signedIn.session.id : null }, moreLink(sessions))}
${card(person.keys, user.status === 'suspended' ? person.keysSuspended : '', keys.rows.length > 0 ? keyTable(keys.rows, now, 'admin', undefined, null, user.status === 'suspended' ? adminTexts.statuses.suspended : null) : '', moreLink(keys))}
${card(person.events, '', itemList(await eventRows(kit, user.id, events.rows, 'admin')), moreLink(events))}
<section class="card"><h2>${texts.usage.title}</h2>${usageChart(usage, { isOver: user.status !== 'active' })}</section>
${isDeleted ? '' : card(person.consents, '', itemList(consents.rows.map(each => html`<li class="item"><div class="what"><span class="name">${each.name}</span><p><code>${each.scopes.join(' ')}</code></p></div><p class="when">${ago(each.grantedAt, now)}</p></li>`)), moreLink(consents))}
${token ? html`${supportCard(user, token, newId(now))}${isSelf ? selfCard() : ''}${dangerCard(dangerousActsOf(user, isSelf, activeKeys > 0), token)}` : ''}`
  return renderAdmin(kit, c, 'people', { title }, body)
}

function factsOf(user: User, balance: string, signIn: SignInState | null): Html[] {
  const { person, roles } = adminTexts
  const facts: [string, Html | string][] = [
    [person.balance, balance],
    [person.role, roles[user.role]],
    [person.since, day(user.createdAt)],
    ...(user.status === 'deleted' ? [] : [[person.language, languageOf(user)] as [string, string]]),
    ...(signIn ? signInFacts(signIn) : []),
  ]
  return facts.map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)
}

function languageOf({ locale }: User): string {
  return (locale && LANGUAGE_NAMES.of(locale)) ?? adminTexts.person.noLanguage
}

/** Links to what is audited when it is read (ledger, mails, export), and to the audit of this person. */
function auditedListLinks({ id, status }: User): Html {
  const { person, nav } = adminTexts
  const link = (query: string, label: string) =>
    html`<a class="button second small" href="/admin/users/${id}${query}">${label}</a>`
  const mailsLink = status === 'deleted' ? '' : link('?show=mails', person.mails)
  return html`<p class="buttons readings">${link('?show=ledger', person.ledger)} ${mailsLink} <a class="button second small" href="/admin/users/${id}/export" download>${person.export}</a> <a class="button second small" href="/admin/audit?subject=${id}">${nav.audit}<span class="unseen"> ${person.ofThis}</span></a></p><p class="hint">${status === 'deleted' ? person.recordedOfDeleted : person.recorded}</p>`
}

function card(title: string, lead: string, content: Html | '', moreLink: Html | ''): Html {
  return html`<section class="card flush"><div class="card-head"><h2>${title}</h2>${lead ? html`<p class="quiet">${lead}</p>` : ''}</div>${content || noneNote()}${moreLink}</section>`
}

function noneNote(): Html {
  return html`<p class="card-foot quiet">${adminTexts.none}</p>`
}

function itemList(items: Html[]): Html | '' {
  return items.length > 0 ? html`<ul class="list">${items}</ul>` : ''
}

/** Reads the list that the query requests, which is audited; empty if it requests none. */
function readAuditedList(
  kit: PageKit,
  c: PageContext,
  user: User,
  by: ActedBy,
  token: string | null,
): Promise<Html> | '' {
  switch (c.req.query('show')) {
    case 'ledger':
      return ledgerOf(kit, user, by)
    case 'mails':
      return mailsOf(kit, user, by, token)
    default:
      return ''
  }
}

async function ledgerOf(kit: PageKit, { id }: User, by: ActedBy): Promise<Html> {
  const read = () => kit.accounts.ledger(id, { limit: LEDGER_ROWS, after: null })
  const { rows } = await kit.administration.auditedRead(id, 'ledger', by, read)
  return card(adminTexts.person.ledger, '', rows.length > 0 ? ledgerTable(rows) : '', '')
}

async function mailsOf(kit: PageKit, { id }: User, by: ActedBy, token: string | null): Promise<Html> {
  const rows = await kit.administration.mailsOf(id, by)
  const items = rows.map(mail => mailRow(mail, kit.clock.now(), token, `/admin/users/${id}`))
  return card(adminTexts.person.mails, '', itemList(items), '')
}

export async function exportPerson(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const user = await personOf(kit, c)
  // Reading is audited, so a link on another site must not cause it.
  if (isFromOtherSite(c)) throw notFound()
  const read = async () => kit.exportOf(user, 'operator', () => assertMayStillRead(kit, c))
  const body = await kit.administration.auditedRead(user.id, 'export', actedByOf(kit, c, signedIn), read)
  return download(c, user, body)
}
