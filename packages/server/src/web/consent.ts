import { html } from 'hono/html'
import { isSelfDescribed } from '../apps/app.ts'
import type { AuthorizationRequest } from '../authorizations/authorization-request.ts'
import type { SignedIn } from '../sessions/sessions.ts'
import type { PageContext, PageKit } from './kit.ts'
import { formToken, type Html } from './layout.ts'
import type { PendingRequest } from './pending-requests.ts'
import { texts } from './texts.ts'

/** The page that asks a person whether an app may have what it asks for. */
export function renderConsent(
  kit: PageKit,
  c: PageContext,
  {
    request,
    pending,
    scopes,
    signedIn: { user },
  }: {
    request: AuthorizationRequest
    pending: PendingRequest
    scopes: readonly string[]
    signedIn: SignedIn
  },
): Response | Promise<Response> {
  const { consent } = texts.apps
  const { name } = request.app
  const body = html`<section class="card ask">
<h1>${consent.heading(name)}</h1>
<p class="lead">${consent.signedInAs} <strong>${user.email}</strong>. <a href="/sign-in?again=1">${consent.other}</a></p>
${isSelfDescribed(request.app.id) ? html`<p class="banner warning">${consent.unchecked}</p>` : ''}
${scopes.length > 0 ? html`<p>${consent.list(name)}</p><ul>${scopes.map(scopeItem)}</ul>` : ''}
${request.audience === null ? '' : html`<p>${consent.actsAt} <code>${request.audience}</code>.</p>`}
<form method="post" action="/oauth/consent">
${formToken(kit.forms.token(c))}
<input type="hidden" name="request" value="${pending.id}">
<input type="hidden" name="user" value="${user.id}">
<button class="full" name="decision" value="allow">${consent.allow}</button>
<button class="full second" name="decision" value="deny">${consent.deny}</button>
</form>
<p class="hint">${consent.goesTo} <code>${destination(request.redirectUri)}</code>. ${consent.later}</p>
</section>`
  // Without navigation: the question comes first.
  return kit.render(c, { title: consent.title, user: null }, body)
}

export function scopeItem(scope: string): Html {
  const { scopes, ownScope } = texts.apps
  return html`<li>${scopes[scope] ?? ownScope(scope)}</li>`
}

/** What a person can compare with where they came from: the host of a page, or the scheme of a native app. */
function destination(redirectUri: string): string {
  const url = new URL(redirectUri)
  // What follows a scheme of an app's own looks like a host and is none.
  return /^https?:$/.test(url.protocol) ? url.host : url.protocol
}
