import type { Hono } from 'hono'
import { html, raw } from 'hono/html'
import { isAppId } from '../apps/app.ts'
import { KeywayError } from '../errors.ts'
import { texts } from '../languages/current.ts'
import { type EmailAddress, parseEmailAddress } from '../users/email-address.ts'
import type { PageContext, PageKit, PageVariables } from './kit.ts'
import { formToken } from './layout.ts'
import { richText } from './rich.ts'
import { emailField, renderSuspended, startSession } from './sign-in.ts'
import { prepareWaitingRequest } from './waiting-request.ts'

/** Query parameters of a mailed link. */
interface LinkParts {
  token: string
  email: EmailAddress
  appId: string | undefined
}

/**
 * /verify. A GET never consumes the link: mail scanners open links, and some run scripts. Sign-in is automatic only in
 * the browser that requested this link, if no other person is signed in there, by a POST that the page's script sends.
 */
export function verifyPages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/verify', async c => {
    c.header('Referrer-Policy', 'no-referrer')
    // script.js removes the token from the address bar, so a reload of the page has none.
    if (!c.req.query('token') && !c.req.query('email')) return c.redirect('/check-mail', 303)
    const parts = readParts(name => c.req.query(name))
    if (!parts) return renderUnusable(kit, c, 'invalid', c.req.query('email') ?? '')
    const { state, loginId } = await kit.magicLinks.inspect(parts.token, parts.email)
    if (state !== 'live') return answerUnusable(kit, c, state, parts.email)
    const isRequestedHere = kit.cookies.requestedLinks(c).some(link => link.loginId === loginId)
    return renderConfirm(kit, c, parts, isRequestedHere && otherSignedInEmail(c, parts) === null)
  })
  app.post('/verify', c => {
    c.header('Referrer-Policy', 'no-referrer')
    return verify(kit, c)
  })
}

function readParts(field: (name: string) => string | null | undefined): LinkParts | null {
  const email = parseEmailAddress(field('email') ?? '')
  const token = field('token') ?? ''
  const appId = field('app_id') ?? undefined
  if (!email || !/^[\w-]{43}$/.test(token) || (appId !== undefined && !isAppId(appId))) return null
  return { token, email, appId }
}

/** The address of another user who is signed in here, or null. */
function otherSignedInEmail(c: PageContext, { email }: LinkParts): string | null {
  const currentEmail = c.get('signedIn')?.user.email ?? null
  return currentEmail === email ? null : currentEmail
}

async function verify(kit: PageKit, c: PageContext): Promise<Response> {
  const form = kit.forms.read(c)
  const parts = readParts(name => form.get(name))
  if (!parts) return renderUnusable(kit, c, 'invalid', form.get('email') ?? '')
  const caller = kit.callerOf(c.req.raw, c.env)
  try {
    const requestedLoginIds = kit.cookies.requestedLinks(c).map(({ loginId }) => loginId)
    return await startSession(
      kit,
      c,
      await kit.magicLinks.verify({ ...parts, requestedLoginIds }, 'page', caller),
    )
  } catch (error) {
    if (!(error instanceof KeywayError)) throw error
    if (error.code === 'account_suspended') return renderSuspended(kit, c, parts.email)
    if (error.code === 'forbidden') return renderNotOpen(kit, c)
    const state = UNUSABLE_STATES[error.code]
    // A second click on the button is not counted as a failure: the first one signed this user in.
    if (state === 'used' && c.get('signedIn')?.user.email === parts.email)
      return c.redirect(kit.cookies.takeDestination(c) ?? '/keys', 303)
    const refusal = kit.failures.refusal(caller, error)
    if (!state || refusal.code === 'rate_limited') throw refusal
    return renderUnusable(kit, c, state, parts.email)
  }
}

type UnusableState = 'used' | 'expired' | 'invalid'

const UNUSABLE_STATES: { [code: string]: UnusableState | undefined } = {
  magic_link_used: 'used',
  magic_link_expired: 'expired',
  magic_link_invalid: 'invalid',
}

/** Redirects to /keys if the link was used and its address is signed in here; otherwise shows why it is unusable. */
function answerUnusable(kit: PageKit, c: PageContext, state: UnusableState, email: string) {
  if (state === 'used' && c.get('signedIn')?.user.email === email) return c.redirect('/keys', 303)
  return renderUnusable(kit, c, state, email)
}

async function renderConfirm(kit: PageKit, c: PageContext, parts: LinkParts, isAutomatic: boolean) {
  const { verify } = texts
  await prepareWaitingRequest(kit, c)
  const otherEmail = otherSignedInEmail(c, parts)
  const body = html`<section class="card">
<h1>${verify.title}</h1>
${isAutomatic ? html`<p class="lead" role="status">${verify.signingIn}</p>` : html`<p class="lead">${richText(verify.lead, { email: html`<strong>${parts.email}</strong>` })}</p>`}
${otherEmail ? html`<p class="banner warning">${verify.other({ email: otherEmail })}</p>` : ''}
<form method="post" action="/verify"${isAutomatic ? raw(' data-auto-submit') : ''}>
${formToken(kit.forms.token(c))}
<input type="hidden" name="token" value="${parts.token}">
<input type="hidden" name="email" value="${parts.email}">
${parts.appId ? html`<input type="hidden" name="app_id" value="${parts.appId}">` : ''}
<button class="full">${verify.submit}</button>
</form>
${isAutomatic ? '' : html`<p class="hint">${verify.notYou}</p>`}
</section>`
  return kit.render(c, { title: verify.title }, body)
}

function renderUnusable(kit: PageKit, c: PageContext, state: UnusableState, email: string) {
  const { verify } = texts
  const body = html`<section class="card">
<h1>${verify[state]}</h1>
<p class="lead">${verify[`${state}Lead`]}</p>
<form method="post" action="/sign-in">
${formToken(kit.forms.token(c))}
${emailField(email)}
<button class="full">${verify.fresh}</button>
</form>
</section>`
  return kit.render(c, { title: verify[state], formAt: '/sign-in' }, body, state === 'invalid' ? 400 : 410)
}

function renderNotOpen(kit: PageKit, c: PageContext) {
  const { verify } = texts
  const body = html`<section class="card"><h1>${verify.notOpen}</h1><p class="lead">${verify.notOpenLead({ support: kit.supportEmail })}</p></section>`
  return kit.render(c, { title: verify.notOpen, formAt: '/sign-in' }, body, 403)
}
