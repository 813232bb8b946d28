import type { Hono } from 'hono'
import { html } from 'hono/html'
import {
  formatUserCode,
  isFreshSignIn,
  parseUserCode,
} from '../device-authorizations/device-authorization.ts'
import { KeywayError } from '../errors.ts'
import { texts } from '../languages/current.ts'
import type { SignedIn } from '../sessions/session.ts'
import { parseEmailAddress } from '../users/email-address.ts'
import { type FoundRequest, renderApproval } from './device-approval.ts'
import { type PageContext, type PageKit, type PageVariables, Redirect } from './kit.ts'
import { formToken } from './layout.ts'

/**
 * /device (RFC 8628 section 3.3): a signed-in person types the code of a device or opens its link, sees who asks, from
 * where and for what, and decides. Nothing is granted by a GET.
 */
export function devicePages(app: Hono<PageVariables>, kit: PageKit): void {
  app.get('/device', c => openDevicePage(kit, c))
  app.post('/device', c => findByTypedCode(kit, c))
  app.post('/device/decision', c => decide(kit, c))
}

async function openDevicePage(kit: PageKit, c: PageContext): Promise<Response> {
  const [code = '', ticket = ''] = [c.req.query('user_code'), c.req.query('ticket')]
  const path = ticket ? `/device?${new URLSearchParams({ user_code: code, ticket })}` : '/device'
  const person = requireFreshSignIn(kit, c, path)
  if (!ticket) return renderCodeForm(kit, c, { typed: code })
  const authorization = await kit.deviceAuthorizations.findByLink(ticket, code)
  if (!authorization) return renderGone(kit, c)
  const request = withProof(kit, person, { id: authorization.id, by: 'link', code })
  return renderApproval(kit, c, authorization, request)
}

/** The signed-in person, if the sign-in is recent. @throws Redirect to /sign-in, which returns to `path` */
function requireFreshSignIn(kit: PageKit, c: PageContext, path: string): SignedIn {
  const person = c.get('signedIn')
  if (person && isFreshSignIn(person.session, kit.clock.now())) return person
  kit.cookies.rememberDestination(c, path)
  throw new Redirect(person ? '/sign-in?again=1' : '/sign-in')
}

async function findByTypedCode(kit: PageKit, c: PageContext): Promise<Response> {
  const person = requireFreshSignIn(kit, c, '/device')
  const typedCode = kit.forms.read(c).get('user_code') ?? ''
  const caller = kit.callerOf(c.req.raw, c.env)
  try {
    kit.failures.assertMayGuess(caller)
    const email = parseEmailAddress(person.user.email ?? '')!
    const authorization = await kit.deviceAuthorizations.findByTypedCode(typedCode, { email }, caller)
    if (!authorization) throw kit.failures.refusal(caller, unknownCode())
    const request = withProof(kit, person, { id: authorization.id, by: 'typed', code: typedCode })
    return renderApproval(kit, c, authorization, request)
  } catch (error) {
    if (!(error instanceof KeywayError)) throw error
    if (error.code === 'magic_link_invalid')
      return renderCodeForm(kit, c, { typed: typedCode, problem: texts.device.unknownCode }, 400)
    if (error.code !== 'rate_limited') throw error
    c.header('Retry-After', String(error.extras.retryAfter ?? 1))
    return renderCodeForm(kit, c, { typed: '', problem: texts.device.codesRefused }, 429)
  }
}

/** The error for an unknown code: that for a wrong code from a mail, which `kit.failures.refusal` counts as a guess. */
function unknownCode(): KeywayError {
  return new KeywayError('magic_link_invalid', texts.device.unknownCode)
}

async function decide(kit: PageKit, c: PageContext): Promise<Response> {
  const person = requireFreshSignIn(kit, c, '/device')
  const form = kit.forms.read(c)
  const provenRequest = readProof(kit, form.get('proof') ?? '', person)
  const authorization = provenRequest && (await kit.deviceAuthorizations.pending(provenRequest.id))
  if (!provenRequest || !authorization) return renderGone(kit, c)
  const isApproval = form.get('decision') === 'approve'
  if (isApproval && provenRequest.by === 'link' && form.get('compared') !== 'yes') {
    return renderApproval(kit, c, authorization, provenRequest, texts.device.comparedMissing)
  }
  const outcome = await kit.deviceAuthorizations.decide(
    authorization.id,
    isApproval ? 'approved' : 'denied',
    person,
    kit.callerOf(c.req.raw, c.env),
  )
  return outcome === 'done' ? renderDecided(kit, c, isApproval) : renderGone(kit, c)
}

/**
 * Adds a MAC over the session, the request and how the person opened it, so that a form cannot name another request or
 * skip the comparison of codes.
 */
function withProof(
  kit: PageKit,
  { session }: SignedIn,
  { id, by, code }: Omit<FoundRequest, 'proof'>,
): FoundRequest {
  const formattedCode = formatUserCode(parseUserCode(code)!)
  const mac = kit.secrets.mac('device-approval', `${session.id} ${id} ${by} ${formattedCode}`)
  return { id, by, code: formattedCode, proof: [id, by, formattedCode, mac].join('~') }
}

function readProof(kit: PageKit, proof: string, { session }: SignedIn): FoundRequest | null {
  const [id = '', by = '', code = '', mac = ''] = proof.split('~')
  const isProven = kit.secrets.verifyMac('device-approval', `${session.id} ${id} ${by} ${code}`, mac)
  return isProven ? { id, by: by as FoundRequest['by'], code, proof } : null
}

function renderCodeForm(
  kit: PageKit,
  c: PageContext,
  shown: { typed: string; problem?: string },
  status = 200,
): Response | Promise<Response> {
  const body = html`<section class="card ask">
<h1>${texts.device.title}</h1>
<p class="lead">${texts.device.typeLead}</p>
<form method="post" action="/device">
${formToken(kit.forms.token(c))}
<div class="field">
<label for="user_code">${texts.device.code}</label>
<input id="user_code" class="code" name="user_code" value="${shown.typed}" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="24" required autofocus aria-describedby="user-code-hint">
<p class="hint" id="user-code-hint">${texts.device.codeHint}</p>
</div>
<button>${texts.device.next}</button>
</form>
</section>`
  return kit.render(c, { title: texts.device.title, problem: shown.problem ?? null }, body, status)
}

function renderGone(kit: PageKit, c: PageContext): Response | Promise<Response> {
  const body = html`<section class="card ask"><h1>${texts.device.gone}</h1><p class="lead">${texts.device.goneLead}</p></section>`
  return kit.render(c, { title: texts.device.gone }, body, 410)
}

function renderDecided(kit: PageKit, c: PageContext, isApproved: boolean): Response | Promise<Response> {
  const [title, lead] = isApproved
    ? [texts.device.approved, texts.device.approvedLead]
    : [texts.device.denied, texts.device.deniedLead]
  const body = html`<section class="card ask"><h1>${title}</h1><p class="lead">${lead}</p><p><a class="button" href="/keys">${texts.device.keys}</a></p></section>`
  return kit.render(c, { title }, body)
}
