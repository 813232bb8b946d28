import type { Hono } from 'hono'
import { html } from 'hono/html'
import { DELETION_WAIT } from '../account-changes/deletions.ts'
import { type EmailChange, unconfirmedSides } from '../account-changes/email-change.ts'
import { formatMoney } from '../billing/money.ts'
import { DAY } from '../clock.ts'
import { KeywayError } from '../errors.ts'
import { localization, texts } from '../languages/current.ts'
import { isFresh } from '../sessions/reauthentication.ts'
import type { SignedIn } from '../sessions/session.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import type { User } from '../users/user.ts'
import { type FieldProblem, fieldProblem, fieldState } from './fields.ts'
import { COUNT_LIMIT, formatBoundedCount } from './key-index.ts'
import { type PageContext, type PageKit, type PageVariables, Redirect } from './kit.ts'
import { day, factList, formToken, type Html, time } from './layout.ts'
import { richText } from './rich.ts'

/** A form on /account that was refused, with the submitted values. */
export interface RefusedAccountForm {
  problem: FieldProblem
  newEmail: string
}

type RenderAccount = (c: PageContext, refused: RefusedAccountForm) => Promise<Response>

/** The change of the address and the deletion of the account, on pages of their own and as cards of /account. */
export function accountChangePages(
  app: Hono<PageVariables>,
  kit: PageKit,
  renderAccount: RenderAccount,
): void {
  app.post('/account/email', c => requestChange(kit, c, renderAccount))
  app.post('/account/email/cancel', async c => {
    const { user } = kit.requireSession(c)
    kit.forms.read(c)
    await kit.emailChanges.cancel(user.id)
    return c.redirect('/account?done=email_cancelled', 303)
  })
  app.get('/account/email', c => renderConfirmation(kit, c, c.req.query('token') ?? ''))
  app.post('/account/email/confirm', c => confirm(kit, c))
  app.get('/account/delete', c => renderDeletion(kit, c))
  app.post('/account/delete', async c => {
    const { user } = requireRecentSignIn(kit, c, '/account/delete')
    kit.forms.read(c)
    try {
      await kit.deletions.request(user.id, kit.callerOf(c.req.raw, c.env))
    } catch (error) {
      if (error instanceof KeywayError && error.code === 'last_administrator')
        return renderDeletion(kit, c, texts.deletion.lastAdministrator)
      throw error
    }
    return c.redirect('/account?done=deletion_asked', 303)
  })
  app.post('/account/restore', async c => {
    const { user } = requireRecentSignIn(kit, c, '/account')
    kit.forms.read(c)
    await kit.deletions.cancel(user.id, kit.callerOf(c.req.raw, c.env))
    return c.redirect('/account?done=deletion_kept', 303)
  })
}

/**
 * The signed-in user and session. @throws Redirect to /sign-in if no user is signed in, or if the sign-in is too old:
 * then the person returns to `path` after signing in again
 */
function requireRecentSignIn(kit: PageKit, c: PageContext, path: string): SignedIn {
  const signedIn = kit.requireSession(c)
  if (isFresh(signedIn.session, kit.clock.now())) return signedIn
  kit.cookies.rememberDestination(c, path)
  throw new Redirect('/sign-in?again=1')
}

async function requestChange(kit: PageKit, c: PageContext, renderAccount: RenderAccount): Promise<Response> {
  const form = kit.forms.read(c)
  const newEmail = (form.get('new_email') ?? '').slice(0, 400)
  const signedIn = requireRecentSignIn(kit, c, `/account?new_email=${encodeURIComponent(newEmail)}`)
  const refuse = (message: string) => renderAccount(c, { problem: { field: 'new_email', message }, newEmail })
  const email = parseEmailAddress(newEmail)
  if (!email) return refuse(texts.signIn.badEmail)
  if (email === signedIn.user.email) return refuse(texts.addressChange.same)
  try {
    await kit.emailChanges.request(signedIn, email, kit.callerOf(c.req.raw, c.env))
  } catch (error) {
    if (!(error instanceof KeywayError)) throw error
    if (error.code === 'invalid_request') return refuse(texts.addressChange.otherDomain)
    throw error
  }
  return c.redirect('/account?done=email_asked', 303)
}

/** The card of /account that changes the address, or shows a pending change. */
export function addressCard(
  change: EmailChange | null,
  token: string,
  refused: RefusedAccountForm | null,
  typedEmail: string,
): Html {
  const { addressChange } = texts
  if (change) return pendingChange(change, token)
  const problem = refused?.problem
  return html`<section class="card" id="address"><h2>${addressChange.title}</h2><p class="quiet" id="new-email-hint">${addressChange.hint}</p>
<form method="post" action="/account/email" class="inline">${formToken(token)}<div class="field"><label for="new_email">${addressChange.label}</label><input id="new_email" name="new_email" type="email" autocomplete="email" required value="${refused?.newEmail ?? typedEmail}"${fieldState('new_email', problem, 'new-email-hint')}>${fieldProblem('new_email', problem)}</div><button class="second">${addressChange.submit}</button></form></section>`
}

function pendingChange(change: EmailChange, token: string): Html {
  const { pending, awaits, until, cancel, title } = texts.addressChange
  const { newEmail, oldEmail, expiresAt } = change
  const addresses = unconfirmedSides(change).map(side => (side === 'old' ? oldEmail : newEmail))
  return html`<section class="card" id="address"><h2>${title}</h2>
<p>${richText(pending, { email: html`<strong>${newEmail}</strong>` })}</p>
<ul>${addresses.map(email => html`<li>${awaits({ email })}</li>`)}</ul>
<p class="quiet">${richText(until, { date: time(expiresAt) })}</p>
<form method="post" action="/account/email/cancel">${formToken(token)}<button class="second small">${cancel}</button></form></section>`
}

/**
 * The page that the mailed link of an address change opens. A GET confirms nothing: mail scanners open links, and must
 * not confirm a change.
 */
async function renderConfirmation(kit: PageKit, c: PageContext, token: string): Promise<Response> {
  const { user } = kit.requireSession(c)
  // script.js removes the token from the address bar, so a reload of the page has none.
  if (token === '') return c.redirect('/account', 303)
  const { addressChange } = texts
  const confirmation = await kit.emailChanges.inspect(user.id, token)
  if (!confirmation) return renderInvalid(kit, c, user)
  const { change } = confirmation
  const lead = richText(addressChange.lead, {
    from: html`<strong>${change.oldEmail}</strong>`,
    to: html`<strong>${change.newEmail}</strong>`,
  })
  const body = html`<section class="card ask"><h1>${addressChange.title}</h1><p class="lead">${lead}</p>
<form class="buttons" method="post" action="/account/email/confirm">${formToken(kit.forms.token(c))}<input type="hidden" name="token" value="${token}"><button>${addressChange.confirm}</button><a class="button second" href="/account">${texts.keys.cancel}</a></form></section>`
  return kit.render(c, { title: addressChange.title, current: '/account', returnTo: null }, body)
}

async function confirm(kit: PageKit, c: PageContext): Promise<Response> {
  const { user, session } = kit.requireSession(c)
  const token = kit.forms.read(c).get('token') ?? ''
  try {
    const requestingSession = (await kit.emailChanges.pending(user.id))?.sessionId
    const outcome = await kit.emailChanges.confirm(user.id, token, kit.callerOf(c.req.raw, c.env))
    if (outcome.is === 'awaits') return c.redirect('/account#address', 303)
    if (requestingSession === session.id) return c.redirect('/account?done=email_changed', 303)
    // The confirmation ended all sessions but the one that requested the change, so this one has ended.
    kit.cookies.clearSession(c)
    return c.redirect('/sign-in?done=email_changed', 303)
  } catch (error) {
    if (error instanceof KeywayError && error.code === 'invalid_request') return renderInvalid(kit, c, user)
    throw error
  }
}

async function renderInvalid(kit: PageKit, c: PageContext, { email }: User): Promise<Response> {
  const { invalid, invalidLead, toAccount } = texts.addressChange
  const body = html`<section class="card"><h1>${invalid}</h1><p class="lead">${richText(invalidLead, { email: html`<strong>${email}</strong>` })}</p><p><a class="button" href="/account">${toAccount}</a></p></section>`
  return kit.render(c, { title: invalid, current: '/account', returnTo: null }, body, 400)
}

/** The card of /account that leads to the deletion, or cancels one that was requested. */
export function deletionCard({ deletesAt }: User, token: string): Html {
  const { deletion } = texts
  if (deletesAt === null)
    return html`<section class="card spread"><div><h2>${deletion.title}</h2><p class="quiet">${deletion.lead({ days: DELETION_WAIT / DAY })}</p></div><a class="button danger" href="/account/delete">${deletion.start}</a></section>`
  return html`<section class="card spread"><div><h2>${deletion.title}</h2><p>${richText(deletion.pending, { date: html`<strong>${time(deletesAt)}</strong>` })}</p></div><form method="post" action="/account/restore">${formToken(token)}<button>${deletion.keep}</button></form></section>`
}

/** The page that asks for a confirmation of the deletion, after a recent sign-in. */
async function renderDeletion(kit: PageKit, c: PageContext, problem?: string): Promise<Response> {
  const { user } = requireRecentSignIn(kit, c, '/account/delete')
  const { deletion } = texts
  const deletionTime = kit.clock.now() + DELETION_WAIT
  const body = html`<section class="card ask"><h1>${deletion.confirmTitle}</h1>
${await endedByDeletion(kit, user)}
<ul><li>${richText(deletion.wait, { date: time(deletionTime) })}</li><li>${deletion.afterwards}</li><li>${deletion.ledger}</li><li>${deletion.again}</li></ul>
<p class="quiet">${richText(deletion.hint, { revokeKeys: html`<a href="/keys">${deletion.revokeKeys}</a>` })}</p>
<form class="buttons" method="post" action="/account/delete">${formToken(kit.forms.token(c))}<button class="danger"><span>${richText(deletion.submit, { date: day(deletionTime) })}</span></button><a class="button second" href="/account">${deletion.cancel}</a></form></section>`
  const options = {
    title: deletion.confirmTitle,
    current: '/account',
    problem: problem ?? null,
    formAt: '/account/delete',
  }
  return kit.render(c, options, body, problem ? 409 : 200)
}

/** What the deletion would end: how many keys, agents, sessions, consents and authorisations, and the balance. */
async function endedByDeletion(kit: PageKit, { id }: User): Promise<Html> {
  const { deletion, agents, sessions, account, apps } = texts
  const page = { limit: COUNT_LIMIT, after: null }
  const [{ active }, connections, openSessions, consents, { balance, authorizations }] = await Promise.all([
    kit.store.apiKeys.count(id, kit.clock.now(), COUNT_LIMIT),
    kit.agents.connections(id),
    kit.sessions.list(id, page),
    kit.consents.list(id, page),
    kit.accounts.get(id),
  ])
  const chargingApps = authorizations.filter(({ revokedAt }) => revokedAt === null)
  const labelledCounts: [string, number][] = [
    [deletion.activeKeys, active],
    [agents.title, connections.length],
    [sessions.title, openSessions.rows.length],
    [apps.account.title, consents.rows.length],
    [account.charging, chargingApps.length],
  ]
  const rows = labelledCounts
    .filter(([, count]) => count > 0)
    .map(([label, count]) => [label, formatBoundedCount(count)] as const)
  const hasApps = consents.rows.length > 0 || chargingApps.length > 0
  const noAppsNote = hasApps ? '' : html`<p class="quiet">${account.appsNone}</p>`
  return html`<h2>${deletion.goes}</h2>${factList([
    ...rows,
    [account.balance, localization().dollars(formatMoney(balance))],
  ])}${noAppsNote}`
}
