import { html, raw } from 'hono/html'
import { texts } from '../languages/current.ts'
import { type Html, pageHead } from './layout.ts'

export type AccountSection = '/account' | `/account/${'balance' | 'usage' | 'apps' | 'events'}`

/** The layout of the account's pages: links to all of them next to the content of the current one. */
export function accountFrame(
  current: AccountSection,
  head: { title: string; lead: Html | string },
  body: Html,
): Html {
  const { account } = texts
  const sections: [AccountSection, string][] = [
    ['/account', account.profile],
    ['/account/balance', account.balance],
    ['/account/usage', account.usage],
    ['/account/apps', account.apps],
    ['/account/events', account.events],
  ]
  const links = sections.map(
    ([path, label]) =>
      html`<a href="${path}"${path === current ? raw(' aria-current="page"') : ''}>${label}</a>`,
  )
  return html`<div class="sections"><nav class="side" aria-label="${account.title}">${links}</nav>
<div>${pageHead(head.title, head.lead)}
${body}</div></div>`
}
