import { html } from 'hono/html'
import { texts } from '../../languages/current.ts'
import { PROBLEMS, type ProblemKind } from '../../problems.ts'
import type { PageContext } from '../kit.ts'
import { codeBlock } from './code.ts'
import { type Docs, renderInFrame } from './frame.ts'
import { inlineMarkup } from './inline.ts'

const PROBLEM_KINDS: Readonly<Record<string, ProblemKind>> = PROBLEMS

/** /docs/errors: all error codes. */
export function renderErrors(docs: Docs, c: PageContext) {
  const { docs: words } = texts
  const rows = Object.entries(PROBLEM_KINDS).sort(([, one], [, other]) => one.status - other.status)
  const body = html`<h1>${words.errors}</h1>
<div class="scroll" tabindex="0"><table><thead><tr><th scope="col">${words.code}</th><th scope="col">${words.status}</th><th scope="col">${words.meaning}</th></tr></thead><tbody>${rows.map(([code, { status, title }]) => html`<tr><td><a href="/errors/${code}"><code>${code}</code></a></td><td>${status}</td><td>${title}</td></tr>`)}</tbody></table></div>`
  return renderInFrame(docs, c, { title: words.errors, body, current: '/docs/errors' })
}

/** /errors/{code}: the page that the `type` of a problem document refers to. Null if there is no such code. */
export function renderError(docs: Docs, c: PageContext, code: string) {
  if (!Object.hasOwn(PROBLEM_KINDS, code)) return null
  const { status, title, help } = PROBLEM_KINDS[code]!
  const { docs: words } = texts
  const calls = docs.operations.filter(({ responses }) =>
    Object.hasOwn(responses[String(status)]?.content?.['application/problem+json']?.examples ?? {}, code),
  )
  const problem = {
    type: `${docs.kit.publicUrl}/errors/${code}`,
    title,
    status,
    detail: help.replaceAll('`', ''),
    code,
    request_id: '019aa2c4-f19a-7da9-8f6b-2e8d1c5a7b30',
  }
  const body = html`<p class="back"><a href="/docs/errors">${words.errors}</a></p>
<h1>${title}</h1>
<p class="call"><code>${code}</code> · ${words.status} ${status}</p>
<h2>${words.whatToDo}</h2><p>${inlineMarkup(help)}</p>
<h2>${words.example}</h2>${codeBlock({ language: 'json', text: JSON.stringify(problem, null, 2) }, 'example')}
${calls.length > 0 && calls.length <= 12 ? html`<h2>${words.reference}</h2><ul>${calls.map(({ operationId, summary }) => html`<li><a href="/docs/call/${operationId}">${summary}</a></li>`)}</ul>` : ''}`
  return renderInFrame(docs, c, { title, body, current: '/docs/errors' })
}
