import { html } from 'hono/html'
import { texts } from '../../languages/current.ts'
import type { PageContext } from '../kit.ts'
import { formToken, type Html } from '../layout.ts'
import { bodyOf, type Operation, type Parameter } from './api-document.ts'
import { codeBlock } from './code.ts'
import { exampleOf } from './examples.ts'
import { type Docs, operationPath } from './frame.ts'

/** Maximum number of characters of a response that are shown. */
const MAX_SHOWN_LENGTH = 30_000

/** A call that was made by the form: the submitted fields, and the response. */
export interface TriedCall {
  fields: URLSearchParams
  status: number
  text: string
}

/**
 * The form that makes a call as the signed-in person, and the response to the last call. Without a session a link
 * to sign in; empty if the operation is not offered.
 */
export function tryForm({ kit }: Docs, c: PageContext, operation: Operation, tried: TriedCall | null): Html {
  if (!kit.api.mayTry(operation.operationId)) return html``
  const { docs, nav } = texts
  const head = html`<h2>${docs.tryIt}</h2>`
  if (!c.get('signedIn'))
    return html`<section class="card try" id="try">${head}<p class="quiet">${docs.trySignIn}</p><p><a class="button second small" href="${operationPath(operation)}/sign-in">${nav.signIn}</a></p></section>`
  const body = bodyOf(operation)
  return html`<section class="card try" id="try">${head}<p class="quiet">${docs.tryLead}</p>
<form method="post" action="${operationPath(operation)}#try">${formToken(kit.forms.token(c))}
${operation.parameters.filter(each => each.in !== 'header').map(each => field(each, tried))}
${body ? html`<div class="field"><label for="try-body">${docs.body}</label><textarea id="try-body" name="body" rows="5" spellcheck="false">${tried?.fields.get('body') ?? JSON.stringify(body.content.example ?? {}, null, 2)}</textarea></div>` : ''}
<button>${docs.send}</button></form>
${tried ? answer(tried) : ''}</section>`
}

function field(parameter: Parameter, tried: TriedCall | null): Html {
  const { name, required } = parameter
  const id = `try-${parameter.in}-${name}`
  const fieldName = `${parameter.in}.${name}`
  const example = parameter.in === 'path' ? exampleOf(parameter) : ''
  const typedValue = tried?.fields.get(fieldName) ?? ''
  return html`<div class="field"><label for="${id}"><code>${name}</code>${required ? html` <span class="quiet">${texts.docs.required}</span>` : ''}</label>${
    parameter.schema.enum
      ? html`<select id="${id}" name="${fieldName}"><option value=""></option>${parameter.schema.enum.map(value => html`<option value="${String(value)}"${typedValue === value ? ' selected' : ''}>${String(value)}</option>`)}</select>`
      : html`<input id="${id}" name="${fieldName}" value="${typedValue}" placeholder="${example}" autocomplete="off"${required ? ' required' : ''}>`
  }</div>`
}

function answer({ status, text }: TriedCall): Html {
  const { docs } = texts
  const isTruncated = text.length > MAX_SHOWN_LENGTH
  return html`<h3 role="status">${docs.answer({ status: String(status) })}</h3>${text ? codeBlock({ language: 'json', text: text.slice(0, MAX_SHOWN_LENGTH) }, 'tried') : ''}${isTruncated ? html`<p class="quiet">${docs.answerCut}</p>` : ''}`
}

/**
 * Makes the call that a form describes. A refusal by the API is returned like any other response.
 *
 * @throws Redirect if no user is signed in, KeywayError if the form itself is refused (see `Forms.read`)
 */
export async function makeCall(
  { kit }: Docs,
  c: PageContext,
  { operationId }: Operation,
): Promise<TriedCall> {
  const signedIn = kit.requireSession(c)
  const fields = kit.forms.read(c)
  const fieldsWith = (prefix: string) =>
    [...fields]
      .filter(([name, value]) => name.startsWith(prefix) && value.trim() !== '')
      .map(([name, value]) => [name.slice(prefix.length), value.trim()] as [string, string])
  const typedCall = {
    operation: operationId,
    params: Object.fromEntries(fieldsWith('path.')),
    query: new URLSearchParams(fieldsWith('query.')),
    body: fields.get('body') ?? '',
  }
  const { status, body } = await kit.api.call(typedCall, signedIn, c.env)
  return { fields, status, text: body === undefined ? '' : JSON.stringify(body, null, 2) }
}
