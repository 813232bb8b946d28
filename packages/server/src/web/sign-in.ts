import type { Hono } from 'hono'
import { html, raw } from 'hono/html'
import { DEFAULT_APP_ID, isAppId } from '../apps/app.ts'
import { formatMoney } from '../billing/money.ts'
import { KeywayError } from '../errors.ts'
import { localization, texts } from '../languages/current.ts'
import { isLoginCode, LOGIN_CODE_DIGITS } from '../magic-links/login-code.ts'
import type { Session } from '../sessions/session.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import type { User } from '../users/user.ts'
import type { RequestedLink } from './cookies.ts'
import { type FieldProblem, fieldProblem, fieldState } from './fields.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { formToken, type Html } from './layout.ts'
import { richText } from './rich.ts'
import { findWaiting } from './waiting-request.ts'

/** How long the button for another mail is disabled after one was sent. */
const RESEND_PAUSE_SECONDS = 15

/** The pages /sign-in, /check-mail and /sign-out. */
export function signInPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/sign-in', async c => {
    const signedIn = c.get('signedIn')
    // The address in the link of an invitation.
    const invited = parseEmailAddress(c.req.query('email') ?? '')
    if (signedIn && !c.req.query('again') && !invited) return c.redirect('/keys', 303)
    const waiting = await findWaiting(kit, c)
    const email = invited ?? waiting?.loginHint ?? signedIn?.user.email ?? ''
    return renderSignIn(kit, c, { email, appId: c.req.query('app_id') })
  })
  app.post('/sign-in', c => sendLink(kit, c))
  app.get('/check-mail', async c => {
    const [requested] = kit.cookies.requestedLinks(c)
    // The link was opened in another tab meanwhile: continue here too.
    if (requested && isSignedInSince(c, requested))
      return c.redirect(kit.cookies.takeDestination(c) ?? '/keys', 303)
    return requested ? renderCheckMail(kit, c, requested, {}) : c.redirect('/sign-in', 303)
  })
  app.post('/check-mail', c => redeemCode(kit, c))
  app.post('/sign-out', async c => {
    kit.forms.read(c)
    const signedIn = c.get('signedIn')
    if (signedIn)
      await kit.sessions.end(signedIn.user.id, signedIn.session.id, kit.callerOf(c.req.raw, c.env))
    kit.cookies.clearSession(c)
    return c.redirect('/sign-in?done=signed_out', 303)
  })
}

function isSignedInSince(c: PageContext, { email, at }: RequestedLink): boolean {
  const signedIn = c.get('signedIn')
  return signedIn?.user.email === email && signedIn.session.createdAt >= at
}

async function sendLink(kit: PageKit, c: PageContext): Promise<Response> {
  const form = kit.forms.read(c)
  const typed = form.get('email') ?? ''
  const appId = form.get('app_id') ?? undefined
  const email = parseEmailAddress(typed)
  if (!email) {
    const refused = { field: 'email', message: texts.signIn.badEmail }
    return renderSignIn(kit, c, { refused, email: typed, appId }, 400)
  }
  try {
    const isReturning = kit.cookies.isReturning(c, email)
    const linkRequest = {
      email,
      appId: appId && isAppId(appId) ? appId : DEFAULT_APP_ID,
      isReturning,
      locale: localization().tag,
    }
    const { loginId } = await kit.magicLinks.send(linkRequest, kit.callerOf(c.req.raw, c.env))
    kit.cookies.rememberRequested(c, { loginId, email, at: kit.clock.now() })
    return c.redirect(form.get('again') ? '/check-mail?done=resent' : '/check-mail', 303)
  } catch (error) {
    if (!(error instanceof KeywayError) || error.code !== 'rate_limited') throw error
    return renderLimited(kit, c, error, typed, appId)
  }
}

function renderLimited(kit: PageKit, c: PageContext, error: KeywayError, email: string, appId?: string) {
  const seconds = error.extras.retryAfter ?? 1
  c.header('Retry-After', String(seconds))
  const { limited, noNewMail, limitIs } = texts.checkMail
  const [requested] = kit.cookies.requestedLinks(c)
  const hasMail = requested?.email === parseEmailAddress(email)
  // Only the operator can read the local inbox, so the name of the setting is shown.
  const setting = kit.showsInbox(c) ? error.extras.setting : undefined
  const problem = `${hasMail ? noNewMail : limited}${setting ? ` ${limitIs({ setting })}` : ''}`
  if (requested && hasMail) return renderCheckMail(kit, c, requested, { problem, pause: seconds }, 429)
  return renderSignIn(kit, c, { problem, email, appId, pause: seconds }, 429)
}

/** `0:57` or `1:00:57`, the format of the script's countdown. */
function countdown(seconds: number): string {
  const padded = (count: number) => String(count).padStart(2, '0')
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  return hours > 0
    ? `${hours}:${padded(minutes % 60)}:${padded(seconds % 60)}`
    : `${minutes}:${padded(seconds % 60)}`
}

async function redeemCode(kit: PageKit, c: PageContext): Promise<Response> {
  const form = kit.forms.read(c)
  const requested = kit.cookies.requestedLinks(c).find(link => link.loginId === form.get('login_id'))
  if (!requested) return c.redirect('/sign-in', 303)
  const code = (form.get('code') ?? '').replace(/[\s-]/g, '')
  if (!isLoginCode(code)) return renderCheckMail(kit, c, requested, { badCode: texts.checkMail.badCode }, 400)
  const caller = kit.callerOf(c.req.raw, c.env)
  try {
    kit.failures.assertMayGuess(caller)
    const isReturning = kit.cookies.isReturning(c, requested.email)
    const proof = { loginId: requested.loginId, code, email: requested.email, isReturning }
    return await startSession(kit, c, await kit.magicLinks.verify(proof, 'page', caller))
  } catch (error) {
    if (!(error instanceof KeywayError)) throw error
    const refusal = kit.failures.refusal(caller, error)
    if (error.code === 'account_suspended') return renderSuspended(kit, c, requested.email)
    const problem = codeProblem(kit, refusal)
    if (!problem) throw error
    if (refusal.code !== 'rate_limited') return renderCheckMail(kit, c, requested, { badCode: problem }, 400)
    c.header('Retry-After', String(refusal.extras.retryAfter ?? 1))
    return renderCheckMail(kit, c, requested, { problem }, 429)
  }
}

/** Sets the session cookie, and ends the browser's previous session. */
export async function startSession(
  kit: PageKit,
  c: PageContext,
  started: { cookie: string; isNewUser: boolean; user: User; session: Session },
): Promise<Response> {
  kit.cookies.setSession(c, started.cookie, kit.lifetimes.sessionSeconds)
  const email = started.user.email && parseEmailAddress(started.user.email)
  if (email) kit.cookies.rememberSignIn(c, email)
  const previous = c.get('signedIn')
  if (previous) await kit.sessions.replace(previous.session, started.session, kit.callerOf(c.req.raw, c.env))
  const home = started.isNewUser ? '/keys?done=welcome' : '/keys'
  return c.redirect(kit.cookies.takeDestination(c) ?? home, 303)
}

function codeProblem(kit: PageKit, error: KeywayError): string | null {
  if (error.code === 'magic_link_invalid') return texts.checkMail.badCode
  if (error.code === 'magic_link_expired') return texts.checkMail.expired
  if (error.code === 'magic_link_used') return texts.checkMail.used
  if (error.code === 'forbidden') return texts.verify.notOpenLead({ support: kit.supportEmail })
  return error.code === 'rate_limited' ? texts.checkMail.codesRefused : null
}

/** The page for a suspended account: it says why nobody is signed in, and whom to ask. */
export function renderSuspended(kit: PageKit, c: PageContext, email: string): Response | Promise<Response> {
  const { verify } = texts
  const subject = encodeURIComponent(verify.suspendedSubject({ email }))
  const body = html`<section class="card"><h1>${verify.suspended}</h1><p class="lead">${verify.suspendedLead({ product: kit.productName })}</p><p><a class="button second full" href="mailto:${encodeURI(kit.supportEmail)}?subject=${subject}">${verify.askSupport({ support: kit.supportEmail })}</a></p></section>`
  return kit.render(c, { title: verify.suspended, formAt: '/sign-in' }, body, 403)
}

/** The field for the address; also on the page for invalid links. */
export function emailField(email: string, refused: FieldProblem | null = null, focus = false): Html {
  const { signIn } = texts
  const attributes = refused ? fieldState('email', refused) : raw(focus ? ' autofocus' : '')
  return html`<div class="field">
<label for="email">${signIn.email}</label>
<input id="email" name="email" type="email" value="${email}" placeholder="${signIn.emailExample}" autocomplete="email" inputmode="email" spellcheck="false" required maxlength="254"${attributes}>
${fieldProblem('email', refused)}
</div>`
}

async function renderSignIn(
  kit: PageKit,
  c: PageContext,
  shown: { problem?: string; refused?: FieldProblem; email: string; appId?: string; pause?: number },
  status = 200,
): Promise<Response> {
  const { signIn, apps } = texts
  const waiting = await findWaiting(kit, c)
  const body = html`<section class="card">
<h1>${signIn.heading({ product: kit.productName })}</h1>
${waiting ? html`<p class="lead"><strong>${apps.signInTo({ app: waiting.app.name })}</strong></p>` : ''}
<p class="lead">${signIn.lead}</p>
<form method="post" action="/sign-in">
${formToken(kit.forms.token(c))}
${shown.appId ? html`<input type="hidden" name="app_id" value="${shown.appId}">` : ''}
${emailField(shown.email, shown.refused, true)}
<button class="full" id="send">${signIn.submit}</button>
${shown.pause ? countdownLine(shown.pause, 'send') : ''}
</form>
<p class="hint">${signUpHint(kit)}</p>
</section>`
  const isRefused = shown.refused !== undefined
  const options = { title: signIn.title, problem: shown.problem ?? null, isRefused, formAt: '/sign-in' }
  return kit.render(c, options, body, status)
}

function signUpHint(kit: PageKit): string {
  const { signUp, trialCredit } = kit.policies.current()
  const { newHere } = texts.signIn
  if (signUp !== 'open' || trialCredit <= 0) return newHere[signUp]
  return newHere.openWithCredit({ credit: localization().dollars(formatMoney(trialCredit)) })
}

async function renderCheckMail(
  kit: PageKit,
  c: PageContext,
  requested: RequestedLink,
  shown: { problem?: string; badCode?: string; pause?: number },
  status = 200,
): Promise<Response> {
  const { checkMail } = texts
  const elapsed = Math.ceil((kit.clock.now() - requested.at) / 1000)
  const pause = shown.pause ?? Math.max(0, RESEND_PAUSE_SECONDS - elapsed)
  const token = kit.forms.token(c)
  const isInboxHere = kit.showsInbox(c)
  await findWaiting(kit, c)
  const address = html`<strong>${requested.email}</strong>`
  // The refused mail is not on its way.
  const isLimited = shown.problem !== undefined && shown.pause !== undefined
  const refused = shown.badCode ? { field: 'code', message: shown.badCode } : null
  const body: Html = html`<section class="card" data-goes-on="/check-mail">
<h1>${checkMail.title}</h1>
<p class="lead">${isLimited ? address : richText(checkMail.lead, { email: address })}</p>
${kit.inbox ? inboxHint(isInboxHere) : ''}
<form method="post" action="/check-mail">
${formToken(token)}
<input type="hidden" name="login_id" value="${requested.loginId}">
<div class="field">
<label for="code">${checkMail.code}</label>
<input id="code" class="code" name="code" inputmode="numeric" autocomplete="one-time-code" pattern="[0-9 \\-]{8,11}" title="${checkMail.codeHint}" maxlength="11" required data-complete="${LOGIN_CODE_DIGITS}"${refused ? '' : raw(' autofocus')}${fieldState('code', refused, 'code-hint')}>
${fieldProblem('code', refused)}
<p class="hint" id="code-hint">${checkMail.codeHint}</p>
</div>
<button class="full ${isInboxHere ? 'second' : ''}">${checkMail.submit}</button>
</form>
<hr>
<form method="post" action="/sign-in" class="spread">
${formToken(token)}
<input type="hidden" name="email" value="${requested.email}"><input type="hidden" name="again" value="1">
<button class="plain" id="resend">${checkMail.resend}</button>
<a href="/sign-in">${checkMail.wrongAddress}</a>
</form>
${countdownLine(pause, 'resend')}
</section>`
  const options = { title: checkMail.title, problem: shown.problem ?? null, formAt: '/check-mail' }
  return kit.render(c, { ...options, isRefused: refused !== null }, body, status)
}

/** The time until the button is enabled; the script counts it down and disables the button. */
function countdownLine(pause: number, buttonId: string): Html {
  const { checkMail } = texts
  return html`<p class="hint countdown" data-countdown="${pause}" data-enables="${buttonId}" data-words="${checkMail.wait({ time: '{}' })}">${pause > 0 ? checkMail.wait({ time: countdown(pause) }) : ''}</p>`
}

/** If mail is not sent: a link to the local inbox, or a hint for the operator. */
function inboxHint(isHere: boolean): Html {
  const { checkMail } = texts
  return isHere
    ? html`<p><a class="button full" href="/inbox" target="_blank">${checkMail.inbox}</a></p>`
    : html`<p class="hint">${checkMail.inboxElsewhere} <code>npx keyway inbox</code></p>`
}
