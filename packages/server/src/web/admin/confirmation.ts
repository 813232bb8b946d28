import { html, raw } from 'hono/html'
import type { PageContext, PageKit } from '../kit.ts'
import { formToken, type Html } from '../layout.ts'
import { renderAdmin, type Section } from './acting.ts'

/** The question whether to perform an act that must be confirmed. */
export interface Question {
  section: Section
  title: string
  /** The effects of the act, and its subject. */
  body: Html
  /** The URL that the form posts to. */
  action: string
  fields: Html
  submit: string
  /** Whether the act removes nothing, so that its button does not warn; false by default. */
  isHarmless?: boolean
  cancel: { href: string; label: string }
}

/** A page that asks to confirm an act; works without scripts. */
export function renderQuestion(
  kit: PageKit,
  c: PageContext,
  { section, title, body, action, fields, submit, isHarmless, cancel }: Question,
): Response | Promise<Response> {
  const page = html`<section class="card ask"><h1>${title}</h1>
${body}
<form method="post" action="${action}">${formToken(kit.forms.token(c))}${fields}<div class="buttons"><button${isHarmless ? '' : raw(' class="danger"')}>${submit}</button><a class="button second" href="${cancel.href}">${cancel.label}</a></div></form></section>`
  return renderAdmin(kit, c, section, { title }, page)
}
