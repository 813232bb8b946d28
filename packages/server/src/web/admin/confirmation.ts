import { html } from 'hono/html'
import type { PageContext, PageKit } from '../kit.ts'
import { formToken, type Html } from '../layout.ts'
import { renderAdmin, type Section } from './acting.ts'

/** What is asked once more before it is done. */
export interface Question {
  section: Section
  title: string
  /** What the act does, and to what. */
  body: Html
  /** Where the form is sent. */
  action: string
  fields: Html
  submit: string
  cancel: { href: string; label: string }
}

/** A page that asks before an act, which works without scripts. */
export function renderQuestion(
  kit: PageKit,
  c: PageContext,
  { section, title, body, action, fields, submit, cancel }: Question,
): Response | Promise<Response> {
  const page = html`<section class="card ask"><h1>${title}</h1>
${body}
<form method="post" action="${action}">${formToken(kit.forms.token(c))}${fields}<div class="buttons"><button class="danger">${submit}</button><a class="button second" href="${cancel.href}">${cancel.label}</a></div></form></section>`
  return renderAdmin(kit, c, section, { title }, page)
}
