import { html } from 'hono/html'
import { KeywayError } from '../errors.ts'
import { localization, texts } from '../languages/current.ts'
import { SealError } from '../secrets.ts'
import { type PageContext, type PageKit, Redirect } from './kit.ts'
import type { Html } from './layout.ts'

interface Problem {
  title: string
  lead: string
  /** The message of the API, in English. */
  reason?: string
  status: number
}

/** The page for an error, which is logged if its status is 500 or more. A `Redirect` is answered with a 303 instead. */
export function renderProblem(kit: PageKit, c: PageContext, error: Error): Response | Promise<Response> {
  if (error instanceof Redirect) return c.redirect(error.location, 303)
  const { title, lead, reason, status } = describe(error)
  const requestId = kit.requestIdOf(c.env)
  if (status >= 500)
    kit.log.error({ request_id: requestId, err: error.name, detail: error.message }, 'a page failed')
  const retryAfter = error instanceof KeywayError ? error.extras.retryAfter : undefined
  if (status === 503 || retryAfter) c.header('Retry-After', String(retryAfter ?? 1))
  const supportNote = status >= 500 ? supportReference(kit, requestId) : ''
  const body = html`<section class="card ask"><h1>${title}</h1><p class="lead">${lead}</p>${reason ? html`<p lang="en" dir="ltr">${reason}</p>` : ''}${supportNote}<p><a class="button" href="/">${texts.errors.home}</a></p></section>`
  return kit.render(c, { title, current: '', formAt: '/' }, body, status)
}

/** The support address, and the request id by which the operator finds the error in the log. */
function supportReference({ supportEmail, brand }: PageKit, requestId: string): Html {
  const mailUrl = `mailto:${encodeURI(supportEmail)}?subject=${encodeURIComponent(requestId)}`
  const { support } = brand.links
  return html`<p class="quiet">${texts.errors.tell}</p><p><code>${requestId}</code></p><p><a href="${mailUrl}">${supportEmail}</a>${support ? html` · <a href="${support}">${texts.nav.support}</a>` : ''}</p>`
}

export function notFound(): KeywayError {
  return new KeywayError('not_found', texts.errors.notFoundLead)
}

export function methodNotAllowed(): KeywayError {
  return new KeywayError('method_not_allowed', texts.errors.methodLead)
}

export function wantsHtml(c: PageContext): boolean {
  return c.req.header('accept')?.includes('text/html') ?? false
}

export function wantsJson(c: PageContext): boolean {
  return !wantsHtml(c) && (c.req.header('accept')?.includes('application/json') ?? false)
}

function describe(error: Error): Problem {
  const { errors } = texts
  if (error instanceof SealError)
    return { title: errors.unavailable, lead: errors.unavailableLead, status: 503 }
  if (!(error instanceof KeywayError))
    return { title: errors.internal, lead: errors.unavailableLead, status: 500 }
  switch (error.code) {
    case 'unavailable':
      return { title: errors.unavailable, lead: errors.unavailableLead, status: 503 }
    case 'not_found':
      return { title: errors.notFound, lead: errors.notFoundLead, status: 404 }
    case 'method_not_allowed':
      return { title: errors.method, lead: errors.methodLead, status: 405 }
    case 'forbidden':
      return { title: errors.form, lead: errors.formLead, status: 403 }
    case 'rate_limited':
      return { title: errors.limited, lead: limitedLead(error), status: 429 }
    case 'payload_too_large':
      return { title: errors.refused, ...reasonOf(error), status: 413 }
    case 'unsupported_media_type':
      return { title: errors.refused, ...reasonOf(error), status: 415 }
    default:
      return { title: errors.refused, ...reasonOf(error), status: 400 }
  }
}

/** Says when to try again. Only the English text, which is the API's message, also names the limit. */
export function limitedLead({ message, extras }: KeywayError): string {
  if (localization().language === 'en') return message
  return texts.errors.limitedLead({ wait: localization().duration(extras.retryAfter ?? 1) })
}

/** The API's message, which is in English. In other languages a translated sentence precedes it. */
function reasonOf({ message }: KeywayError): Pick<Problem, 'lead' | 'reason'> {
  return localization().language === 'en'
    ? { lead: message }
    : { lead: texts.errors.refusedLead, reason: message }
}
