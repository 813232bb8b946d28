import { html } from 'hono/html'
import type { App } from '../apps/app.ts'
import type { IssuedIdToken } from '../authorizations/id-token.ts'
import { responseUri } from '../authorizations/response-uri.ts'
import { texts } from '../languages/current.ts'
import { FORM_TOKEN_FIELD } from './forms.ts'
import type { PageContext, PageKit } from './kit.ts'
import { formToken } from './layout.ts'
import { allowRedirectTo } from './security-headers.ts'

/** A request to sign out (OpenID Connect RP-Initiated Logout 1.0 section 2). */
interface LogoutRequest {
  /** The content of `id_token_hint`, which names the person and the app's session; null without a genuine one. */
  hint: IssuedIdToken | null
  app: App | null
  /** The registered URL of the app to which the browser goes afterwards; null for our own page. */
  redirectUri: string | null
  state: string | null
}

/** GET /oauth/logout: asks to confirm, unless nobody is signed in here or the app presents the person's id token. */
export async function logout(kit: PageKit, c: PageContext): Promise<Response> {
  const request = await readRequest(kit, c, new URL(c.req.url).searchParams)
  if (request === null) return renderUnusable(kit, c)
  const signedIn = c.get('signedIn')
  // Anybody can link to this address, so the person must confirm unless the app has the person's id token.
  if (signedIn && request.hint?.userId !== signedIn.user.id) return renderConfirm(kit, c, request)
  return finish(kit, c, request)
}

/** POST /oauth/logout. A POST from an app's page is redirected to a GET, with which browsers send our cookies. */
export async function logoutByForm(kit: PageKit, c: PageContext): Promise<Response> {
  const fields = new URLSearchParams(kit.formOf(c.req.raw, c.env).toString())
  if (!fields.has(FORM_TOKEN_FIELD)) return c.redirect(`/oauth/logout?${fields}`, 303)
  const request = await readRequest(kit, c, kit.forms.read(c))
  return request === null ? renderUnusable(kit, c) : finish(kit, c, request)
}

/** Reads a request; null if its `client_id` contradicts the id token, or its redirect URI is not the app's. */
async function readRequest(
  kit: PageKit,
  c: PageContext,
  params: URLSearchParams,
): Promise<LogoutRequest | null> {
  const param = (name: string) => params.get(name) || null
  const { readIdToken, findApp, mayRedirectTo } = await kit.authorizations()
  const token = param('id_token_hint')
  const hint = token === null ? null : await readIdToken(token)
  const clientId = param('client_id') ?? hint?.appId ?? null
  if (hint && hint.appId !== clientId) return null
  const app = clientId === null ? null : await findApp(clientId, kit.callerOf(c.req.raw, c.env).network)
  const redirectUri = param('post_logout_redirect_uri')
  if (redirectUri !== null && !app?.logoutUris.includes(redirectUri)) return null
  const mayRedirect = app !== null && (await mayRedirectTo(app, c.get('signedIn')))
  return { hint, app, redirectUri: mayRedirect ? redirectUri : null, state: param('state') }
}

/**
 * Ends the page session with the app sessions that depend on it, and the session that the id token names, unless
 * another person is signed in here. Then redirects to the app or to our own page.
 */
async function finish(kit: PageKit, c: PageContext, request: LogoutRequest): Promise<Response> {
  const { hint, redirectUri, state } = request
  const signedIn = c.get('signedIn')
  const caller = kit.callerOf(c.req.raw, c.env)
  if (signedIn) await kit.sessions.end(signedIn.user.id, signedIn.session.id, caller)
  if (hint && (!signedIn || signedIn.user.id === hint.userId)) {
    const { endIssued } = await kit.authorizations()
    await endIssued(hint, caller)
  }
  kit.cookies.clearSession(c)
  return c.redirect(
    redirectUri === null ? '/sign-in?done=signed_out' : responseUri(redirectUri, { state }),
    303,
  )
}

function renderConfirm(kit: PageKit, c: PageContext, { app, redirectUri, state }: LogoutRequest) {
  const { logout } = texts.apps
  if (redirectUri !== null) allowRedirectTo(c, redirectUri)
  const field = (name: string, value: string | null | undefined) =>
    value ? html`<input type="hidden" name="${name}" value="${value}">` : ''
  const body = html`<section class="card ask">
<h1>${logout.title}</h1>
<p class="lead">${app ? logout.leadOfApp({ app: app.name }) : logout.lead} ${logout.explained}</p>
<form method="post" action="/oauth/logout">
${formToken(kit.forms.token(c))}
${field('client_id', app?.id)}${field('post_logout_redirect_uri', redirectUri)}${field('state', state)}
<button class="full">${logout.confirm}</button>
</form>
<p><a href="/">${logout.stay}</a></p>
</section>`
  return kit.render(c, { title: logout.title, user: null }, body)
}

function renderUnusable(kit: PageKit, c: PageContext) {
  const { logout } = texts.apps
  const body = html`<section class="card"><h1>${logout.unusable}</h1><p class="lead">${logout.unusableLead}</p></section>`
  return kit.render(c, { title: logout.unusable }, body, 400)
}
