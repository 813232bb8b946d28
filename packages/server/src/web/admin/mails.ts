import { html, raw } from 'hono/html'
import type { ListedMail } from '../../administration/administration.ts'
import type { ActedBy } from '../../audit/audit.ts'
import type { Instant } from '../../clock.ts'
import { parseId } from '../../ids.ts'
import { isPastDeadline, type MessageState } from '../../outbox/message.ts'
import type { Suppression } from '../../outbox/suppression.ts'
import { decodeCursor, encodeCursor } from '../../paging.ts'
import { parseEmailAddress } from '../../users/email-address.ts'
import type { PageContext, PageKit } from '../kit.ts'
import { emptyList, formToken, type Html, pageHead, time } from '../layout.ts'
import { notFound } from '../problem.ts'
import { act, destinationOf, invalidForm, mayChange, renderAdmin, requireReader } from './acting.ts'
import { listFoot } from './list-foot.ts'
import { adminTexts } from './texts.ts'

const ROWS_PER_PAGE = 40
const SUPPRESSION_ROWS = 50
const STATES: readonly MessageState[] = ['queued', 'failed', 'expired', 'sent']

/** /admin/mails: the mails in one state, by default queued ones, and suppressed addresses. */
export async function renderMails(kit: PageKit, c: PageContext): Promise<Response> {
  const signedIn = requireReader(kit, c)
  const { mails } = adminTexts
  const state = STATES.find(each => each === c.req.query('state')) ?? 'queued'
  const after = decodeCursor(c.req.query('cursor') ?? '')
  const [slice, suppressions] = await Promise.all([
    kit.administration.mails(state, { limit: ROWS_PER_PAGE, after }),
    kit.administration.suppressions(parseEmailAddress(c.req.query('suppressed') ?? ''), SUPPRESSION_ROWS + 1),
  ])
  const token = mayChange(kit, signedIn) ? kit.forms.token(c) : null
  const foot = listFoot(c, {
    path: '/admin/mails',
    filters: { state },
    rowCount: slice.rows.length,
    total: state === 'queued' ? (await kit.store.outbox.depth(kit.clock.now())).queued : null,
    next: slice.next && { cursor: encodeCursor(slice.next) },
  })
  const tabs = STATES.map(
    each =>
      html`<a href="/admin/mails?state=${each}"${each === state ? raw(' aria-current="true"') : ''}>${mails.states[each]}</a>`,
  )
  const body = html`${pageHead(mails.title, mails.lead)}
<nav class="filter" aria-label="${mails.title}">${tabs}</nav>
<section class="card flush">${slice.rows.length === 0 ? emptyList(mails.empty, mails.emptyLead) : html`<ul class="list">${slice.rows.map(mail => mailRow(mail, kit.clock.now(), token))}</ul>`}${foot}</section>
<section class="card flush"><div class="card-head"><h2>${mails.suppressed}</h2><p class="quiet">${mails.suppressedLead}</p></div>${
    suppressions.length === 0
      ? html`<p class="card-foot quiet">${adminTexts.none}</p>`
      : html`<ul class="list">${suppressions.slice(0, SUPPRESSION_ROWS).map(each => suppressionRow(each, token))}</ul>`
  }${suppressions.length > SUPPRESSION_ROWS ? html`<p class="card-foot"><a href="/admin/mails?state=${state}&amp;suppressed=${encodeURIComponent(suppressions[SUPPRESSION_ROWS - 1]!.address)}">${adminTexts.list.next}</a></p>` : ''}</section>
${token ? testForm(token) : ''}`
  return renderAdmin(kit, c, 'mails', { title: mails.title }, body)
}

function testForm(token: string): Html {
  const { mails } = adminTexts
  return html`<section class="card"><h2>${mails.test}</h2><form method="post" action="/admin/mails/test" class="inline">${formToken(token)}<div class="field"><label for="email">${mails.to}</label><input id="email" name="email" type="email" required maxlength="254" autocomplete="off"></div><button class="second">${mails.send}</button></form></section>`
}

/**
 * @param token the form token; null for no form to lift the suppression
 * @param returnPath the page to return to after the suppression was lifted; if empty, /admin/mails
 */
export function suppressionRow(
  { address, reason, provider, until }: Suppression,
  token: string | null,
  returnPath = '',
): Html {
  const { mails } = adminTexts
  const liftForm = html`<form class="buttons" method="post" action="/admin/mails/lift">${formToken(token ?? '')}${returnPathField(returnPath)}<input type="hidden" name="address" value="${address}"><button class="second small">${mails.lift}<span class="unseen"> ${address}</span></button></form>`
  return html`<li class="item"><div class="what"><span class="name">${address}</span> <span class="tag warn">${mails.isSuppressed}</span><p>${mails.reasons[reason]} · ${mails.reportedBy} ${provider}</p></div><p class="when">${mails.until} ${time(until)}</p>${token ? liftForm : ''}</li>`
}

function returnPathField(returnPath: string): Html | '' {
  return returnPath ? html`<input type="hidden" name="back" value="${returnPath}">` : ''
}

/**
 * @param token the form token; null for no form to send the mail again
 * @param returnPath the page to return to after that; if empty, /admin/mails
 */
export function mailRow(mail: ListedMail, now: Instant, token: string | null, returnPath = ''): Html {
  const { mails } = adminTexts
  const isFailed = mail.state === 'failed' || mail.state === 'expired'
  const isStillUseful = mail.kind !== 'sign_in' && mail.sealedContent !== null && !isPastDeadline(mail, now)
  const canSendAgain = isFailed && isStillUseful
  const tagClass = { queued: 'warn', sent: 'active', failed: 'revoked', expired: 'expired' }[mail.state]
  return html`<li class="item"><div class="what">${recipient(mail)}<p>${mails.kinds[mail.kind]} · ${mails.attempts(mail.attempts)}${mail.lastError ? html` · ${mail.lastError}` : ''}</p></div><p class="when"><span class="tag ${tagClass}">${mails.states[mail.state]}</span> ${time(mail.createdAt)}</p>${token && canSendAgain ? html`<form class="buttons" method="post" action="/admin/mails/again">${formToken(token)}${returnPathField(returnPath)}<input type="hidden" name="id" value="${mail.id}"><button class="second small">${mails.again}<span class="unseen"> ${mail.recipient}</span></button></form>` : ''}</li>`
}

function recipient({ recipient, userId }: ListedMail): Html {
  return userId
    ? html`<a class="name" href="/admin/users/${userId}">${recipient}</a>`
    : html`<span class="name">${recipient}</span>`
}

export function changeMails(kit: PageKit, c: PageContext): Promise<Response> {
  return act(kit, c, '/admin/mails', 'mail_queued', async (form, by) => {
    const returnPath = form.has('back') ? destinationOf(form.get('back') ?? '') : '/admin/mails'
    const notice = await change(kit, c.req.param('act'), form, by())
    const query = new URLSearchParams({
      ...(returnPath === '/admin/users' && { query: form.get('address') ?? '' }),
      done: notice,
    })
    return c.redirect(`${returnPath}?${query.toString()}`, 303)
  })
}

/** Performs the act of a form; returns the name of the notice to show. */
async function change(
  kit: PageKit,
  actName: string | undefined,
  form: URLSearchParams,
  by: ActedBy,
): Promise<string> {
  switch (actName) {
    case 'again': {
      const id = parseId(form.get('id') ?? '')
      if (!id) throw notFound()
      await kit.administration.sendAgain(id, by)
      return 'mail_queued'
    }
    case 'lift':
      await kit.suppressions.lift(addressOf(form.get('address')), by)
      return 'mail_allowed'
    case 'clear-limits':
      await kit.magicLinks.clearLimits(addressOf(form.get('address')), by)
      return 'limits_cleared'
    case 'test':
      await kit.administration.testMail(addressOf(form.get('email')), by)
      return 'mail_queued'
    default:
      throw notFound()
  }
}

function addressOf(text: string | null) {
  const email = parseEmailAddress(text ?? '')
  if (!email) throw invalidForm(adminTexts.mails.badAddress)
  return email
}
