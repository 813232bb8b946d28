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
import { prepareWaitingRequest } from './waiting-request.ts'

/** How long the button for another mail is disabled after one was sent. */
const RESEND_PAUSE_SECONDS = 15

export function signInPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/sign-in', async c => {
    const signedIn = c.get('signedIn')
    // The link in an invitation contains the address.
    const invitedEmail = parseEmailAddress(c.req.query('email') ?? '')
    if (signedIn && !c.req.query('again') && !invitedEmail) return c.redirect('/keys', 303)
    const waitingRequest = await prepareWaitingRequest(kit, c)
    const email = invitedEmail ?? waitingRequest?.loginHint ?? signedIn?.user.email ?? ''
    return renderSignIn(kit, c, { email, appId: c.req.query('app_id') })
  })
  app.post('/sign-in', c => sendLink(kit, c))
  app.get('/check-mail', async c => {
    const [requestedLink] = kit.cookies.requestedLinks(c)
    // If the link was opened in another tab meanwhile, this tab continues too.
    if (requestedLink && isSignedInSince(c, requestedLink))
      return c.redirect(kit.cookies.takeDestination(c) ?? '/keys', 303)
    return requestedLink ? renderCheckMail(kit, c, requestedLink, {}) : c.redirect('/sign-in', 303)
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
  const typedEmail = form.get('email') ?? ''
  const appId = form.get('app_id') ?? undefined
  const email = parseEmailAddress(typedEmail)
  if (!email) {
    const emailProblem = { field: 'email', message: texts.signIn.badEmail }
    return renderSignIn(kit, c, { refused: emailProblem, email: typedEmail, appId }, 400)
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
    return renderLimited(kit, c, error, typedEmail, appId)
  }
}

function renderLimited(kit: PageKit, c: PageContext, error: KeywayError, email: string, appId?: string) {
  const seconds = error.extras.retryAfter ?? 1
  c.header('Retry-After', String(seconds))
  const { limited, noNewMail, limitIs } = texts.checkMail
  const [requestedLink] = kit.cookies.requestedLinks(c)
  const hasEarlierMail = requestedLink?.email === parseEmailAddress(email)
  // A client that may open the local inbox is the operator's, who can change the setting that limited the mail.
  const setting = kit.showsInbox(c) ? error.extras.setting : undefined
  const problem = `${hasEarlierMail ? noNewMail : limited}${setting ? ` ${limitIs({ setting })}` : ''}`
  if (requestedLink && hasEarlierMail)
    return renderCheckMail(kit, c, requestedLink, { problem, pauseSeconds: seconds }, 429)
  return renderSignIn(kit, c, { problem, email, appId, pauseSeconds: seconds }, 429)
}

/** Formats seconds as `0:57` or `1:00:57`, like the countdown of script.js. */
function countdown(seconds: number): string {
  const pad = (count: number) => String(count).padStart(2, '0')
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  return hours > 0 ? `${hours}:${pad(minutes % 60)}:${pad(seconds % 60)}` : `${minutes}:${pad(seconds % 60)}`
}

async function redeemCode(kit: PageKit, c: PageContext): Promise<Response> {
  const form = kit.forms.read(c)
  const requestedLink = kit.cookies.requestedLinks(c).find(link => link.loginId === form.get('login_id'))
  if (!requestedLink) return c.redirect('/sign-in', 303)
  const code = (form.get('code') ?? '').replace(/[\s-]/g, '')
  if (!isLoginCode(code))
    return renderCheckMail(kit, c, requestedLink, { badCode: texts.checkMail.badCode }, 400)
  const caller = kit.callerOf(c.req.raw, c.env)
  try {
    kit.failures.assertMayGuess(caller)
    const isReturning = kit.cookies.isReturning(c, requestedLink.email)
    const proof = { loginId: requestedLink.loginId, code, email: requestedLink.email, isReturning }
    return await startSession(kit, c, await kit.magicLinks.verify(proof, 'page', caller))
  } catch (error) {
    if (!(error instanceof KeywayError)) throw error
    const refusal = kit.failures.refusal(caller, error)
    if (error.code === 'account_suspended') return renderSuspended(kit, c, requestedLink.email)
    const problem = codeProblemOf(kit, refusal)
    if (!problem) throw error
    if (refusal.code !== 'rate_limited')
      return renderCheckMail(kit, c, requestedLink, { badCode: problem }, 400)
    c.header('Retry-After', String(refusal.extras.retryAfter ?? 1))
    return renderCheckMail(kit, c, requestedLink, { problem }, 429)
  }
}

/**
 * Sets the session cookie, remembers the address for this browser, ends the browser's previous session, and redirects
 * to the page that required the sign-in, by default /keys.
 */
export async function startSession(
  kit: PageKit,
  c: PageContext,
  { cookie, isNewUser, user, session }: { cookie: string; isNewUser: boolean; user: User; session: Session },
): Promise<Response> {
  kit.cookies.setSession(c, cookie, kit.lifetimes.sessionSeconds)
  const email = user.email && parseEmailAddress(user.email)
  if (email) kit.cookies.rememberSignIn(c, email)
  const previousSession = c.get('signedIn')?.session
  if (previousSession) await kit.sessions.replace(previousSession, session, kit.callerOf(c.req.raw, c.env))
  const home = isNewUser ? '/keys?done=welcome' : '/keys'
  return c.redirect(kit.cookies.takeDestination(c) ?? home, 303)
}

function codeProblemOf(kit: PageKit, error: KeywayError): string | null {
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

/** The field for the mail address, which the page for invalid links has too. */
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
  shown: { problem?: string; refused?: FieldProblem; email: string; appId?: string; pauseSeconds?: number },
  status = 200,
): Promise<Response> {
  const { signIn, apps } = texts
  const waitingRequest = await prepareWaitingRequest(kit, c)
  const body = html`<section class="card">
<h1>${signIn.heading({ product: kit.productName })}</h1>
${waitingRequest ? html`<p class="lead"><strong>${apps.signInTo({ app: waitingRequest.app.name })}</strong></p>` : ''}
<p class="lead">${signIn.lead}</p>
<form method="post" action="/sign-in">
${formToken(kit.forms.token(c))}
${shown.appId ? html`<input type="hidden" name="app_id" value="${shown.appId}">` : ''}
${emailField(shown.email, shown.refused, true)}
<button class="full" id="send">${signIn.submit}</button>
${shown.pauseSeconds ? countdownLine(shown.pauseSeconds, 'send') : ''}
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
  requestedLink: RequestedLink,
  shown: { problem?: string; badCode?: string; pauseSeconds?: number },
  status = 200,
): Promise<Response> {
  const { checkMail } = texts
  const elapsed = Math.ceil((kit.clock.now() - requestedLink.at) / 1000)
  const pauseSeconds = shown.pauseSeconds ?? Math.max(0, RESEND_PAUSE_SECONDS - elapsed)
  const token = kit.forms.token(c)
  const isInboxHere = kit.showsInbox(c)
  await prepareWaitingRequest(kit, c)
  const address = html`<strong>${requestedLink.email}</strong>`
  // If a limit refused the mail, the page must not say that it is on its way.
  const isLimited = shown.problem !== undefined && shown.pauseSeconds !== undefined
  const codeProblem = shown.badCode ? { field: 'code', message: shown.badCode } : null
  const body: Html = html`<section class="card" data-goes-on="/check-mail">
<h1>${checkMail.title}</h1>
<p class="lead">${isLimited ? address : richText(checkMail.lead, { email: address })}</p>
${kit.inbox ? inboxHint(isInboxHere) : ''}
<form method="post" action="/check-mail">
${formToken(token)}
<input type="hidden" name="login_id" value="${requestedLink.loginId}">
<div class="field">
<label for="code">${checkMail.code}</label>
<input id="code" class="code" name="code" inputmode="numeric" autocomplete="one-time-code" pattern="[0-9 \\-]{8,11}" title="${checkMail.codeHint}" maxlength="11" required data-complete="${LOGIN_CODE_DIGITS}"${codeProblem ? '' : raw(' autofocus')}${fieldState('code', codeProblem, 'code-hint')}>
${fieldProblem('code', codeProblem)}
<p class="hint" id="code-hint">${checkMail.codeHint}</p>
</div>
<button class="full ${isInboxHere ? 'second' : ''}">${checkMail.submit}</button>
</form>
<hr>
<form method="post" action="/sign-in" class="spread">
${formToken(token)}
<input type="hidden" name="email" value="${requestedLink.email}"><input type="hidden" name="again" value="1">
<button class="plain" id="resend">${checkMail.resend}</button>
<a href="/sign-in">${checkMail.wrongAddress}</a>
</form>
${countdownLine(pauseSeconds, 'resend')}
</section>`
  const options = { title: checkMail.title, problem: shown.problem ?? null, formAt: '/check-mail' }
  return kit.render(c, { ...options, isRefused: codeProblem !== null }, body, status)
}

/** The time until the button is enabled; script.js counts it down and disables the button until then. */
function countdownLine(pauseSeconds: number, buttonId: string): Html {
  const { checkMail } = texts
  return html`<p class="hint countdown" data-countdown="${pauseSeconds}" data-enables="${buttonId}" data-words="${checkMail.wait({ time: '{}' })}">${pauseSeconds > 0 ? checkMail.wait({ time: countdown(pauseSeconds) }) : ''}</p>`
}

/** Shown if mail is stored instead of sent: a link to the local inbox, or how the operator opens it. */
function inboxHint(isHere: boolean): Html {
  const { checkMail } = texts
  return isHere
    ? html`<p><a class="button full" href="/inbox" target="_blank">${checkMail.inbox}</a></p>`
    : html`<p class="hint">${checkMail.inboxElsewhere} <code>npx keyway inbox</code></p>`
}
