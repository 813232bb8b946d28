import type { Hono } from 'hono'
import { html } from 'hono/html'
import { DEFAULT_APP_ID, isAppId } from '../apps/app.ts'
import { KeywayError } from '../errors.ts'
import { parseEmailAddress } from '../users/user.ts'
import type { AskedLink } from './cookies.ts'
import { formToken, type Html } from './layout.ts'
import type { PageContext, PageKit, PageVariables } from './pages.ts'
import { words } from './words.ts'

/** How long the button for another mail rests after one was sent. */
const RESEND_PAUSE_SECONDS = 15

/** /sign-in, /check-mail, /sign-out. */
export function signInPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/sign-in', c => {
    if (c.get('signedIn')) return c.redirect('/keys', 303)
    const notice = c.req.query('ended')
      ? words.signIn.ended
      : c.req.query('out')
        ? words.signIn.signedOut
        : null
    return renderSignIn(kit, c, { notice, email: '', appId: c.req.query('app_id') })
  })
  app.post('/sign-in', c => send(kit, c))
  app.get('/check-mail', c => {
    const [asked] = kit.cookies.askedLinks(c)
    return asked ? renderCheckMail(kit, c, asked, {}) : c.redirect('/sign-in', 303)
  })
  app.post('/check-mail', c => redeemCode(kit, c))
  app.post('/sign-out', async c => {
    await kit.forms.read(c)
    const signedIn = c.get('signedIn')
    if (signedIn)
      await kit.sessions.end(signedIn.user.id, signedIn.session.id, kit.callerOf(c.req.raw, c.env))
    kit.cookies.clearSession(c)
    return c.redirect('/sign-in?out=1', 303)
  })
}

async function send(kit: PageKit, c: PageContext): Promise<Response> {
  const form = await kit.forms.read(c)
  const typed = form.get('email') ?? ''
  const appId = form.get('app_id') ?? undefined
  const email = parseEmailAddress(typed)
  if (!email) return renderSignIn(kit, c, { problem: words.signIn.badEmail, email: typed, appId }, 400)
  try {
    const wanted = { email, appId: appId && isAppId(appId) ? appId : DEFAULT_APP_ID }
    const { loginId } = await kit.magicLinks.send(wanted, kit.callerOf(c.req.raw, c.env))
    kit.cookies.rememberAsked(c, { loginId, email, at: kit.clock.now() })
    return c.redirect(form.get('again') ? '/check-mail?again=1' : '/check-mail', 303)
  } catch (error) {
    if (!(error instanceof KeywayError) || error.code !== 'rate_limited') throw error
    return renderLimited(kit, c, error, typed, appId)
  }
}

function renderLimited(kit: PageKit, c: PageContext, error: KeywayError, email: string, appId?: string) {
  const seconds = error.extras.retryAfter ?? 1
  c.header('Retry-After', String(seconds))
  const problem = words.checkMail.limited(duration(seconds), kit.inbox ? error.extras.setting : undefined)
  const [asked] = kit.cookies.askedLinks(c)
  if (asked && asked.email === parseEmailAddress(email))
    return renderCheckMail(kit, c, asked, { problem, pause: seconds }, 429)
  return renderSignIn(kit, c, { problem, email, appId }, 429)
}

export function duration(seconds: number): string {
  if (seconds < 120) return `${seconds} seconds`
  return seconds < 7200 ? `${Math.ceil(seconds / 60)} minutes` : `${Math.ceil(seconds / 3600)} hours`
}

async function redeemCode(kit: PageKit, c: PageContext): Promise<Response> {
  const form = await kit.forms.read(c)
  const asked = kit.cookies.askedLinks(c).find(link => link.loginId === form.get('login_id'))
  if (!asked) return c.redirect('/sign-in', 303)
  const code = (form.get('code') ?? '').replace(/[\s-]/g, '')
  if (!/^\d{8}$/.test(code)) return renderCheckMail(kit, c, asked, { problem: words.checkMail.badCode }, 400)
  try {
    const proof = { loginId: asked.loginId, code, email: asked.email }
    const started = await kit.magicLinks.verify(proof, 'page', kit.callerOf(c.req.raw, c.env))
    await signInAs(kit, c, started)
    return c.redirect(started.isNewUser ? '/keys?welcome=1' : '/keys', 303)
  } catch (error) {
    const problem = codeProblem(kit, error)
    if (!problem) throw error
    return renderCheckMail(kit, c, asked, { problem }, 400)
  }
}

/** Gives the browser its cookie, and ends the session that it held before: one browser, one person. */
export async function signInAs(
  kit: PageKit,
  c: PageContext,
  started: { cookie: string | null; session: { id: string } },
): Promise<void> {
  const before = c.get('signedIn')
  if (before) await kit.sessions.end(before.user.id, before.session.id, kit.callerOf(c.req.raw, c.env))
  kit.cookies.setSession(c, started.cookie!, kit.lifetimes.sessionSeconds)
}

function codeProblem(kit: PageKit, error: unknown): string | null {
  if (!(error instanceof KeywayError)) return null
  if (error.code === 'magic_link_invalid') return words.checkMail.badCode
  if (error.code === 'magic_link_expired') return words.checkMail.expired
  if (error.code === 'magic_link_used') return words.checkMail.used
  if (error.code === 'account_suspended') return words.verify.suspendedLead(kit.supportEmail)
  return error.code === 'rate_limited' ? error.message : null
}

function renderSignIn(
  kit: PageKit,
  c: PageContext,
  said: { notice?: string | null; problem?: string; email: string; appId?: string },
  status = 200,
): Response | Promise<Response> {
  const { signIn } = words
  const invalid = said.problem === signIn.badEmail
  const body = html`<div class="card">
<h1>${signIn.title}</h1>
<p class="lead">${signIn.lead}</p>
<form method="post" action="/sign-in">
${formToken(kit.forms.token(c))}
${said.appId ? html`<input type="hidden" name="app_id" value="${said.appId}">` : ''}
<div class="field">
<label for="email">${signIn.email}</label>
<input id="email" name="email" type="email" value="${said.email}" autocomplete="email" inputmode="email" autocapitalize="none" spellcheck="false" required maxlength="254" aria-describedby="email-hint" ${invalid ? html`aria-invalid="true"` : ''} autofocus>
<p class="hint" id="email-hint">${signIn.emailHint}</p>
</div>
<button class="wide-button">${signIn.submit}</button>
</form>
</div>
<p class="quiet-text">${signIn.newHere}</p>`
  return kit.render(
    c,
    { title: signIn.title, notice: said.notice ?? null, problem: said.problem ?? null },
    body,
    status,
  )
}

function renderCheckMail(
  kit: PageKit,
  c: PageContext,
  asked: AskedLink,
  said: { problem?: string; pause?: number },
  status = 200,
): Response | Promise<Response> {
  const { checkMail } = words
  const rested = Math.ceil((kit.clock.now() - asked.at) / 1000)
  const pause = said.pause ?? Math.max(0, RESEND_PAUSE_SECONDS - rested)
  const body: Html = html`<div class="card">
<h1>${checkMail.title}</h1>
<p>${checkMail.lead} <strong>${asked.email}</strong>. ${checkMail.expires}</p>
<form method="post" action="/check-mail">
${formToken(kit.forms.token(c))}
<input type="hidden" name="login_id" value="${asked.loginId}">
<div class="field">
<label for="code">${checkMail.code}</label>
<input id="code" class="code" name="code" inputmode="numeric" autocomplete="one-time-code" pattern="[0-9 \\-]{8,11}" maxlength="11" required aria-describedby="code-hint">
<p class="hint" id="code-hint">${checkMail.codeHint}</p>
</div>
<button class="wide-button">${checkMail.submit}</button>
</form>
</div>
<form method="post" action="/sign-in" class="row">
${formToken(kit.forms.token(c))}
<input type="hidden" name="email" value="${asked.email}"><input type="hidden" name="again" value="1">
<button class="quiet" id="resend">${checkMail.resend}</button>
<a class="button quiet" href="/sign-in">${checkMail.wrongAddress}</a>
</form>
<p class="hint" role="status" data-countdown="${pause}" data-enables="resend" data-words="${checkMail.wait('{}')}">${pause > 0 ? checkMail.wait(pause) : ''}</p>
${kit.inbox ? html`<p><a href="/inbox">${checkMail.inbox}</a></p>` : ''}`
  const notice = c.req.query('again') ? checkMail.resent : null
  return kit.render(c, { title: checkMail.title, notice, problem: said.problem ?? null }, body, status)
}
