import { html } from 'hono/html'
import { isSelfDescribed } from '../apps/app.ts'
import type { AuthorizationRequest } from '../authorizations/authorization-request.ts'
import { texts } from '../languages/current.ts'
import type { SignedIn } from '../sessions/session.ts'
import type { PageContext, PageKit } from './kit.ts'
import { formToken, type Html } from './layout.ts'
import type { PendingRequest } from './pending-requests.ts'
import { richText } from './rich.ts'

export function renderConsent(
  kit: PageKit,
  c: PageContext,
  {
    request,
    pendingRequest,
    scopes,
    signedIn: { user },
  }: {
    request: AuthorizationRequest
    pendingRequest: PendingRequest
    scopes: readonly string[]
    signedIn: SignedIn
  },
): Response | Promise<Response> {
  const { consent } = texts.apps
  const { name } = request.app
  const body = html`<section class="card ask">
<p class="initial" aria-hidden="true">${[...name][0]}</p>
<h1>${consent.heading({ app: name })}</h1>
<p class="lead">${richText(consent.signedInAs, { email: html`<strong>${user.email}</strong>` })} <a href="/sign-in?again=1">${consent.other}</a></p>
${isSelfDescribed(request.app.id) ? html`<p class="banner warning">${consent.unchecked}</p>` : ''}
${scopes.length > 0 ? html`<p>${consent.list({ app: name })}</p><ul class="grants">${scopes.map(scopeItem)}</ul>` : ''}
${request.audience === null ? '' : html`<p>${richText(consent.actsAt, { audience: html`<code>${request.audience}</code>` })}</p>`}
<form method="post" action="/oauth/consent">
${formToken(kit.forms.token(c))}
<input type="hidden" name="request" value="${pendingRequest.id}">
<input type="hidden" name="user" value="${user.id}">
<button class="full" name="decision" value="allow">${consent.allow}</button>
<button class="full second" name="decision" value="deny">${consent.deny}</button>
</form>
<p class="hint">${richText(consent.goesTo, { host: html`<code>${destination(request.redirectUri)}</code>` })} ${consent.later}</p>
</section>`
  // With `user: null` the page has no navigation, so that nothing distracts from the question.
  return kit.render(c, { title: consent.title, user: null }, body)
}

export function scopeItem(scope: string): Html {
  return html`<li>${meaningOf(scope)}</li>`
}

/** A description of what a scope allows an app to do. */
export function meaningOf(scope: string): string {
  const { scopes, ownScope } = texts.apps
  const meanings: Readonly<Record<string, string | undefined>> = scopes
  return meanings[scope] ?? ownScope({ scope })
}

/** The part of a redirect URI that a person can recognise: the host of a web page, or the scheme of a native app. */
function destination(redirectUri: string): string {
  const url = new URL(redirectUri)
  // The authority of a private-use scheme looks like a host, but is not one.
  return /^https?:$/.test(url.protocol) ? url.host : url.protocol
}
