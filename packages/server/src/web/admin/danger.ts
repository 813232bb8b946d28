import { html } from 'hono/html'
import { formToken, type Html } from '../layout.ts'
import { adminTexts } from './texts.ts'

export interface DangerousAct {
  /** The URL that the form posts to; with `asksFirst`, that of a page that asks for confirmation. */
  action: string
  /** The heading and the text of the button. */
  title: string
  lead: string
  fields: Html | ''
  /** Whether the act cannot be undone. */
  isFinal: boolean
  /** Whether `action` is the URL of a page that asks for confirmation. */
  asksFirst?: boolean
}

/** A card at the end of a page with the acts that remove something or give rights. */
export function dangerCard(acts: readonly DangerousAct[], token: string): Html {
  const rows = acts.map(({ action, title, lead, fields, isFinal, asksFirst }) => {
    const description = html`<div><h3>${title}</h3><p class="hint">${lead}</p></div>`
    const buttonClass = isFinal ? 'danger' : 'second harm'
    return asksFirst
      ? html`<div class="danger-act">${description}<div class="fields"><a class="button ${buttonClass}" href="${action}">${title}</a></div></div>`
      : html`<form method="post" action="${action}" class="danger-act">${description}<div class="fields">${formToken(token)}${fields}<button class="${buttonClass}">${title}</button></div></form>`
  })
  return html`<section class="card flush danger-card"><div class="card-head"><h2>${adminTexts.danger}</h2></div>
${rows}
</section>`
}
