import { html } from 'hono/html'
import type { Refusal } from '../authorizations/authorization-request.ts'
import type { CheckedRequest } from '../authorizations/begin.ts'
import { KeywayError } from '../errors.ts'
import { texts } from '../languages/current.ts'
import type { SignedIn } from '../sessions/session.ts'
import { renderConsent } from './consent.ts'
import type { PageContext, PageKit } from './kit.ts'
import type { PendingRequest } from './pending-requests.ts'
import { allowRedirectTo } from './security-headers.ts'
import { pathOfRequest } from './waiting-request.ts'

/** Maximum length of the query of the GET to which a POST is redirected; many servers refuse longer ones. */
const MAX_QUERY_LENGTH = 8000

type ValidRequest = Extract<CheckedRequest, { request: unknown }>

/** GET /oauth/authorize: RFC 6749 section 3.1, OpenID Connect Core section 3.1.2. */
export async function authorize(kit: PageKit, c: PageContext): Promise<Response> {
  const { begin } = await kit.authorizations()
  const checkedRequest = await begin(new URL(c.req.url).searchParams, networkOf(kit, c))
  if (!('request' in checkedRequest)) return renderRefusal(kit, c, checkedRequest)
  const { params, pushedId } = checkedRequest
  const pendingRequest = { id: '', at: kit.clock.now(), params, pushedId }
  return answer(kit, c, checkedRequest, pendingRequest)
}

/** POST /oauth/authorize. Redirects to a GET: browsers send no cookies with a POST from another site (SameSite=Lax). */
export function authorizeByForm(kit: PageKit, c: PageContext): Response {
  const query = kit.formOf(c.req.raw, c.env).toString()
  if (query.length > MAX_QUERY_LENGTH)
    throw new KeywayError('payload_too_large', `A request has at most ${MAX_QUERY_LENGTH} characters.`)
  return c.redirect(`/oauth/authorize?${query}`, 303)
}

/** GET /oauth/consent: continues a request that is stored in this browser's cookie. */
export async function continueRequest(kit: PageKit, c: PageContext): Promise<Response> {
  const pendingRequest = kit.pendingRequests.find(c, c.req.query('request'))
  if (!pendingRequest) return renderGone(kit, c)
  const { resume } = await kit.authorizations()
  const checkedRequest = await resume(pendingRequest.params, pendingRequest.pushedId, networkOf(kit, c))
  return 'request' in checkedRequest
    ? answer(kit, c, checkedRequest, pendingRequest)
    : renderRefusal(kit, c, checkedRequest)
}

/** Answers the request, or asks for what it requires first: a sign-in or a consent. */
async function answer(
  kit: PageKit,
  c: PageContext,
  checkedRequest: ValidRequest,
  pendingRequest: PendingRequest,
): Promise<Response> {
  const { request } = checkedRequest
  const signedIn = c.get('signedIn')
  const authorizations = await kit.authorizations()
  const decision = await authorizations.decide(
    { ...checkedRequest, firstSentAt: pendingRequest.at },
    signedIn,
  )
  if ('refusal' in decision) {
    forgetRequest(kit, c, pendingRequest)
    return renderRefusal(kit, c, { ...request, ...decision })
  }
  if (decision.needs === 'nothing')
    return answerWithCode(kit, c, checkedRequest, pendingRequest, signedIn!, null)
  const storedRequest = pendingRequest.id === '' ? kit.pendingRequests.add(c, pendingRequest) : pendingRequest
  kit.cookies.rememberDestination(c, pathOfRequest(storedRequest.id))
  if (decision.needs === 'sign_in') return c.redirect(signedIn ? '/sign-in?again=1' : '/sign-in', 303)
  allowRedirectTo(c, request.redirectUri)
  const { scopes } = decision
  return renderConsent(kit, c, { request, pendingRequest: storedRequest, scopes, signedIn: signedIn! })
}

/** POST /oauth/consent: the person's answer. */
export async function decide(kit: PageKit, c: PageContext): Promise<Response> {
  const form = kit.forms.read(c)
  const pendingRequest = kit.pendingRequests.find(c, form.get('request') ?? undefined)
  const signedIn = c.get('signedIn')
  if (!pendingRequest) return renderGone(kit, c)
  const authorizations = await kit.authorizations()
  const checkedRequest = await authorizations.resume(
    pendingRequest.params,
    pendingRequest.pushedId,
    networkOf(kit, c),
  )
  if (!('request' in checkedRequest)) return renderRefusal(kit, c, checkedRequest)
  // The answer must come from the person to whom the page was shown.
  if (!signedIn || form.get('user') !== signedIn.user.id)
    return answer(kit, c, checkedRequest, pendingRequest)
  const decision = await authorizations.decide(
    { ...checkedRequest, firstSentAt: pendingRequest.at },
    signedIn,
  )
  if (!('needs' in decision) || decision.needs !== 'consent')
    return answer(kit, c, checkedRequest, pendingRequest)
  if (form.get('decision') === 'allow')
    return answerWithCode(kit, c, checkedRequest, pendingRequest, signedIn, decision.scopes)
  forgetRequest(kit, c, pendingRequest)
  const refusal = { error: 'access_denied', description: 'The person did not allow it.' }
  return c.redirect(authorizations.refuse(checkedRequest.request, refusal), 303)
}

async function answerWithCode(
  kit: PageKit,
  c: PageContext,
  checkedRequest: ValidRequest,
  pendingRequest: PendingRequest,
  signedIn: SignedIn,
  consentedScopes: readonly string[] | null,
): Promise<Response> {
  const caller = kit.callerOf(c.req.raw, c.env)
  const datedRequest = { ...checkedRequest, firstSentAt: pendingRequest.at }
  const { issue } = await kit.authorizations()
  const location = await issue(datedRequest, signedIn, consentedScopes, caller)
  forgetRequest(kit, c, pendingRequest)
  return location === null ? renderGone(kit, c) : c.redirect(location, 303)
}

function networkOf(kit: PageKit, c: PageContext): string {
  return kit.callerOf(c.req.raw, c.env).network
}

function forgetRequest(kit: PageKit, c: PageContext, { id }: PendingRequest): void {
  if (id === '') return
  kit.pendingRequests.remove(c, id)
  if (kit.cookies.destination(c) === pathOfRequest(id)) kit.cookies.takeDestination(c)
}

/**
 * Redirects to the app with the error. Shows the error instead if there is no valid redirect URI, or if the operator
 * did not register the app and the person has not consented to it (`mayRedirectTo`).
 */
async function renderRefusal(kit: PageKit, c: PageContext, refused: Exclude<CheckedRequest, ValidRequest>) {
  if ('unusable' in refused) return renderUnusable(kit, c, refused.unusable)
  const { refuse, mayRedirectTo } = await kit.authorizations()
  // `mayRedirectTo` keeps a link to this service from leading to a phishing page. In a frame there is no such danger,
  // since the address bar still shows the embedding page.
  const mayRedirect =
    c.req.header('sec-fetch-dest') === 'iframe' || (await mayRedirectTo(refused.app, c.get('signedIn')))
  return mayRedirect
    ? c.redirect(refuse(refused, refused.refusal), 303)
    : renderUnusable(kit, c, refused.refusal)
}

function renderUnusable(kit: PageKit, c: PageContext, { error, description }: Refusal) {
  const { unusable } = texts.apps
  const body = html`<section class="card"><h1>${unusable.title}</h1><p class="lead">${unusable.lead}</p><p><code>${error}</code> ${description}</p></section>`
  return kit.render(c, { title: unusable.title }, body, 400)
}

function renderGone(kit: PageKit, c: PageContext) {
  const { gone } = texts.apps
  const body = html`<section class="card"><h1>${gone.title}</h1><p class="lead">${gone.lead}</p></section>`
  return kit.render(c, { title: gone.title }, body, 410)
}
