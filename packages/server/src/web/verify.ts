import type { Hono } from 'hono'
import { html } from 'hono/html'
import { isAppId } from '../apps/app.ts'
import { KeywayError } from '../errors.ts'
import { type EmailAddress, parseEmailAddress } from '../users/user.ts'
import { formToken } from './layout.ts'
import type { PageContext, PageKit, PageVariables } from './pages.ts'
import { signInAs } from './sign-in.ts'
import { words } from './words.ts'

/** What a mailed link carries. */
interface LinkParts {
  token: string
  email: EmailAddress
  appId: string | undefined
}

/**
 * /verify. A GET never spends the link: mail scanners open links, and some run scripts. It signs in by itself
 * only in the browser that asked for this very link, and there by a POST that the page's script sends.
 */
export function verifyPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/verify', async c => {
    const parts = readParts(name => c.req.query(name))
    if (!parts) return renderDead(kit, c, 'invalid', c.req.query('email') ?? '')
    const { state, loginId } = await kit.magicLinks.inspect(parts.token, parts.email)
    if (state !== 'live') return answerDead(kit, c, state, parts.email)
    const asked = kit.cookies.askedLinks(c).some(link => link.loginId === loginId)
    return renderConfirm(kit, c, parts, asked && c.get('signedIn') === null)
  })
  app.post('/verify', c => verify(kit, c))
}

function readParts(field: (name: string) => string | null | undefined): LinkParts | null {
  const email = parseEmailAddress(field('email') ?? '')
  const token = field('token') ?? ''
  const appId = field('app_id') ?? undefined
  if (!email || !/^[\w-]{43}$/.test(token) || (appId !== undefined && !isAppId(appId))) return null
  return { token, email, appId }
}

async function verify(kit: PageKit, c: PageContext): Promise<Response> {
  const form = await kit.forms.read(c)
  const parts = readParts(name => form.get(name))
  if (!parts) return renderDead(kit, c, 'invalid', form.get('email') ?? '')
  try {
    const started = await kit.magicLinks.verify(parts, 'page', kit.callerOf(c.req.raw, c.env))
    await signInAs(kit, c, started)
    return c.redirect(started.isNewUser ? '/keys?welcome=1' : '/keys', 303)
  } catch (error) {
    if (!(error instanceof KeywayError)) throw error
    if (error.code === 'magic_link_used') return answerDead(kit, c, 'used', parts.email)
    if (error.code === 'magic_link_expired') return answerDead(kit, c, 'expired', parts.email)
    if (error.code === 'magic_link_invalid') return answerDead(kit, c, 'invalid', parts.email)
    if (error.code === 'account_suspended') return renderSuspended(kit, c)
    throw error
  }
}

function renderConfirm(kit: PageKit, c: PageContext, parts: LinkParts, bySelf: boolean) {
  const { verify } = words
  const other = c.get('signedIn')?.user.email
  c.header('Referrer-Policy', 'no-referrer')
  const body = html`<div class="card">
<h1>${verify.title}</h1>
${bySelf ? html`<p role="status">${verify.signingIn}</p>` : html`<p>${verify.lead} <strong>${parts.email}</strong>.</p>`}
${other && other !== parts.email ? html`<p class="banner notice">${verify.other(other)}</p>` : ''}
<form method="post" action="/verify" ${bySelf ? html`data-auto-submit="yes"` : ''}>
${formToken(kit.forms.token(c))}
<input type="hidden" name="token" value="${parts.token}">
<input type="hidden" name="email" value="${parts.email}">
${parts.appId ? html`<input type="hidden" name="app_id" value="${parts.appId}">` : ''}
<button class="wide-button">${verify.submit(parts.email)}</button>
</form>
</div>`
  return kit.render(c, { title: verify.title }, body)
}

type DeadState = 'used' | 'expired' | 'invalid'

/** A link that brought this very person here once already is no error: on to the keys. */
function answerDead(kit: PageKit, c: PageContext, state: DeadState, email: string) {
  if (state === 'used' && c.get('signedIn')?.user.email === email) return c.redirect('/keys', 303)
  return renderDead(kit, c, state, email)
}

function renderDead(kit: PageKit, c: PageContext, state: DeadState, email: string) {
  const { verify, signIn } = words
  c.header('Referrer-Policy', 'no-referrer')
  const body = html`<div class="card">
<h1>${verify[state]}</h1>
<p class="lead">${verify[`${state}Lead`]}</p>
<form method="post" action="/sign-in">
${formToken(kit.forms.token(c))}
<div class="field">
<label for="email">${signIn.email}</label>
<input id="email" name="email" type="email" value="${email}" autocomplete="email" required maxlength="254">
</div>
<button class="wide-button">${verify.fresh}</button>
</form>
</div>`
  return kit.render(c, { title: verify[state] }, body, state === 'invalid' ? 400 : 410)
}

function renderSuspended(kit: PageKit, c: PageContext) {
  const { verify } = words
  const body = html`<div class="card"><h1>${verify.suspended}</h1><p>${verify.suspendedLead(kit.supportEmail)}</p></div>`
  return kit.render(c, { title: verify.suspended }, body, 403)
}
