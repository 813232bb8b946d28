import { html } from 'hono/html'
import type { PageContext, PageKit } from '../kit.ts'
import { formToken } from '../layout.ts'
import { destinationOf, requireReader } from './acting.ts'
import { adminTexts } from './texts.ts'

/** /admin/confirm: asks for a new sign-in by mail, which returns to the page in the query's `to`, by default /admin. */
export function renderConfirm(kit: PageKit, c: PageContext): Response | Promise<Response> {
  const { user } = requireReader(kit, c)
  const { confirm } = adminTexts
  kit.cookies.rememberDestination(c, destinationOf(c.req.query('to')))
  const body = html`<section class="card"><h1>${confirm.title}</h1><p class="lead">${confirm.lead}</p>
<form method="post" action="/sign-in">${formToken(kit.forms.token(c))}<input type="hidden" name="email" value="${user.email}"><button>${confirm.submit}</button></form></section>`
  return kit.render(c, { title: confirm.title, current: '/admin' }, body)
}
