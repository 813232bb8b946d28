import { html, raw } from 'hono/html'
import type { ActedBy } from '../../audit/audit.ts'
import { MAX_REASON_LENGTH } from '../../audit/audit-event.ts'
import { KeywayError } from '../../errors.ts'
import { isFresh } from '../../sessions/reauthentication.ts'
import type { SignedIn } from '../../sessions/session.ts'
import { type PageContext, type PageKit, Redirect } from '../kit.ts'
import type { Html, PageOptions } from '../layout.ts'
import { notFound } from '../problem.ts'
import { adminTexts, type Notice } from './texts.ts'

export type Section = keyof Omit<typeof adminTexts.nav, 'label'>

const SECTIONS: [Section, string][] = [
  ['overview', '/admin'],
  ['people', '/admin/users'],
  ['keys', '/admin/keys'],
  ['agents', '/admin/agents'],
  ['apps', '/admin/apps'],
  ['mails', '/admin/mails'],
  ['webhooks', '/admin/webhooks'],
  ['invitations', '/admin/invitations'],
  ['policies', '/admin/policies'],
  ['nodes', '/admin/nodes'],
  ['audit', '/admin/audit'],
]

/** @throws Redirect to /sign-in without a session; KeywayError `not_found` without the right to read these pages */
export function requireReader(kit: PageKit, c: PageContext): SignedIn {
  const signedIn = kit.requireSession(c)
  if (signedIn.user.role === 'user') throw notFound()
  return signedIn
}

/** Whether forms are shown: only to administrators with a recent sign-in. */
export function mayChange(kit: PageKit, { user, session }: SignedIn): boolean {
  return user.role === 'admin' && isFresh(session, kit.clock.now())
}

/**
 * @param returnPath the page to return to from a new sign-in
 * @throws Redirect to /admin/confirm if the sign-in is too old, to /sign-in if there is none; KeywayError `not_found`
 *   for all but administrators
 */
export function requireRecentAdministrator(kit: PageKit, c: PageContext, returnPath: string): SignedIn {
  const signedIn = requireReader(kit, c)
  if (signedIn.user.role !== 'admin') throw notFound()
  if (!mayChange(kit, signedIn)) throw new Redirect(`/admin/confirm?to=${encodeURIComponent(returnPath)}`)
  return signedIn
}

/**
 * Runs the act of a form after checking the right to it, and redirects back with a notice, unless the act returns a
 * response of its own.
 *
 * @param notice the name of the notice to show after the redirect
 * @throws Redirect to /admin/confirm if the sign-in is too old, to /sign-in if there is none; KeywayError
 */
export async function act(
  kit: PageKit,
  c: PageContext,
  returnPath: string,
  notice: Notice,
  work: (form: URLSearchParams, by: (reason?: string) => ActedBy) => Promise<unknown>,
): Promise<Response> {
  requireReader(kit, c)
  const form = kit.forms.read(c)
  const signedIn = requireRecentAdministrator(kit, c, returnPath)
  const answer = await work(form, reason => actedByOf(kit, c, signedIn, reason))
  if (answer instanceof Response) return answer
  return c.redirect(`${returnPath}${returnPath.includes('?') ? '&' : '?'}done=${notice}`, 303)
}

export function actedByOf(
  kit: PageKit,
  c: PageContext,
  { user, session }: SignedIn,
  reason?: string,
): ActedBy {
  return {
    actor: { type: 'user', id: user.id, key_id: null, session_id: session.id },
    caller: kit.callerOf(c.req.raw, c.env),
    requestId: null,
    reason: reason?.replace(/\p{Cc}/gu, ' ').trim() || null,
  }
}

/** Whether a page of another origin caused the request, for example by a link. False if the browser does not say so. */
export function isFromOtherSite(c: PageContext): boolean {
  return ['cross-site', 'same-site'].includes(c.req.header('sec-fetch-site') ?? '')
}

/** The link at the top of a page back to its list. */
export function backTo(section: Section): Html {
  const href = SECTIONS.find(([name]) => name === section)![1]
  return html`<p class="back"><a href="${href}">${adminTexts.nav[section]}</a></p>`
}

/** The form field for the reason, which the audit records. */
export function reasonField(id: string, isRequired = false): Html {
  return html`<div class="field"><label for="${id}">${isRequired ? adminTexts.reason : adminTexts.optionalReason}</label><input id="${id}" name="reason" maxlength="${MAX_REASON_LENGTH}" autocomplete="off"${isRequired ? raw(' required') : ''}></div>`
}

/** @throws KeywayError `invalid_request` without a reason */
export function requireReason(by: ActedBy): void {
  if (by.reason === null) throw invalidForm(adminTexts.needsReason)
}

export function invalidForm(message: string): KeywayError {
  return new KeywayError('invalid_request', message)
}

/** A page for administrators and support with their navigation, and a hint if the reader may not change anything. */
export function renderAdmin(
  kit: PageKit,
  c: PageContext,
  section: Section,
  options: Partial<PageOptions> & { title: string },
  body: Html,
  status = 200,
): Response | Promise<Response> {
  const links = SECTIONS.map(
    ([name, href]) =>
      html`<a href="${href}"${name === section ? raw(' aria-current="page"') : ''}>${adminTexts.nav[name]}</a>`,
  )
  const content = html`<nav class="filter in" aria-label="${adminTexts.nav.label}">${links}</nav>
${body}${readOnlyHint(kit, c)}`
  const notice = options.problem ? null : noticeOf(c.req.query('done'))
  return kit.render(c, { ...(notice && { notice }), ...options, current: '/admin' }, content, status)
}

function noticeOf(done = ''): string | null {
  const notices: Readonly<Record<string, string>> = adminTexts.notices
  return Object.hasOwn(notices, done) ? notices[done]! : null
}

function readOnlyHint(kit: PageKit, c: PageContext): Html | '' {
  const signedIn = requireReader(kit, c)
  const { confirm, readOnly } = adminTexts
  if (signedIn.user.role !== 'admin') return html`<p class="quiet">${readOnly}</p>`
  if (mayChange(kit, signedIn)) return ''
  const encodedPath = encodeURIComponent(new URL(c.req.url).pathname)
  return html`<p class="quiet">${confirm.needed} <a href="/admin/confirm?to=${encodedPath}">${confirm.link}</a>.</p>`
}

/** The path if it is below /admin, otherwise /admin, so that a link cannot choose where a sign-in leads. */
export function destinationOf(path: string | undefined): string {
  return path && /^\/admin(?:\/[a-z0-9_-][a-z0-9._-]{0,63}){0,3}$/.test(path) ? path : '/admin'
}

/** The message of an `invalid_request` error. Any other error is rethrown. */
export function refusalOf(error: unknown): string {
  if (error instanceof KeywayError && error.code === 'invalid_request') return error.message
  throw error
}
