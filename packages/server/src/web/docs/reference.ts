import { html } from 'hono/html'
import { texts } from '../../languages/current.ts'
import type { PageContext } from '../kit.ts'
import type { Html } from '../layout.ts'
import {
  type ApiDocument,
  bodyOf,
  isForOperators,
  type Operation,
  type Parameter,
  type Schema,
} from './api-document.ts'
import { codeBlock, codeTabs } from './code.ts'
import { examplesOf } from './examples.ts'
import {
  type Docs,
  mayReadOperatorDocs,
  methodAndPath,
  operationPath,
  renderInFrame,
  tagPath,
} from './frame.ts'
import { inlineMarkup } from './inline.ts'

/** /docs/api/{tag}: the operations of one tag. Null if there is no such tag that this person may see. */
export function renderTag(docs: Docs, document: ApiDocument, c: PageContext, slug: string) {
  const tag = document.tags.find(({ name }) => tagPath(name) === `/docs/api/${slug}`)
  if (!tag || (isForOperators(tag.name) && !mayReadOperatorDocs(c))) return null
  const calls = docs.operations.filter(each => each.tag === tag.name)
  const body = html`<h1>${tag.name}</h1><p class="lead">${inlineMarkup(tag.description)}</p>
<ul class="calls">${calls.map(call => html`<li><a href="${operationPath(call)}">${call.summary}</a><span>${methodAndPath(call)}</span></li>`)}</ul>`
  return renderInFrame(docs, c, { title: tag.name, body, current: tagPath(tag.name) })
}

/** /docs/call/{operation}: one operation. @param callForm the form that makes a call, or nothing */
export function renderOperation(
  docs: Docs,
  document: ApiDocument,
  c: PageContext,
  operation: Operation,
  callForm: Html | '',
  status = 200,
) {
  const { docs: words } = texts
  const { schemas } = document.components
  const body = bodyOf(operation)
  const parameters = (place: Parameter['in']) => operation.parameters.filter(each => each.in === place)
  const content = html`<p class="back"><a href="${tagPath(operation.tag)}">${operation.tag}</a></p>
<h1>${operation.summary}</h1>
<p class="call">${methodAndPath(operation)}</p>
<p>${inlineMarkup(operation.description)}</p>
${codeTabs(examplesOf(operation, docs.kit.publicUrl), 'example')}
${callForm}
${fieldTable(words.path, parameters('path').map(parameterField))}
${fieldTable(words.query, parameters('query').map(parameterField))}
${fieldTable(words.headers, parameters('header').map(parameterField))}
${body ? fieldTable(words.body, fieldsOf(body.content.schema, schemas)) : ''}
${answers(operation)}
${errorCodes(operation)}`
  return renderInFrame(docs, c, {
    title: operation.summary,
    body: content,
    current: tagPath(operation.tag),
    call: operation,
    status,
  })
}

interface Field {
  name: string
  type: string
  isRequired: boolean
  description: string
}

function parameterField({ name, required, description = '', schema }: Parameter): Field {
  return { name, type: typeOf(schema), isRequired: required, description }
}

function fieldsOf(schema: Schema, schemas: ApiDocument['components']['schemas']): Field[] {
  const { properties = {}, required = [] } = schema.$ref ? (schemas[nameOf(schema.$ref)] ?? {}) : schema
  return Object.entries(properties).map(([name, each]) => ({
    name,
    type: typeOf(each),
    isRequired: required.includes(name),
    description: descriptionOf(each),
  }))
}

function fieldTable(title: string, fields: readonly Field[]): Html {
  if (fields.length === 0) return html``
  const { required } = texts.docs
  return html`<h2>${title}</h2><dl class="fields">${fields.map(
    ({ name, type, isRequired, description }) =>
      html`<div><dt><code>${name}</code> <span class="quiet">${type}${isRequired ? html` · ${required}` : ''}</span></dt><dd>${inlineMarkup(description)}</dd></div>`,
  )}</dl>`
}

function nameOf(reference: string): string {
  return reference.split('/').at(-1)!
}

/** A short name of a type. An enumeration is named by its values, and `null` is left out of alternatives. */
function typeOf({ $ref, type, items, anyOf, enum: values }: Schema): string {
  if ($ref) return nameOf($ref)
  if (values) return values.map(value => JSON.stringify(value)).join(' | ')
  if (anyOf) return [...new Set(anyOf.map(typeOf))].filter(each => each !== 'null').join(' | ')
  if (type === 'array' && items) return `${typeOf(items)}[]`
  return Array.isArray(type) ? type.filter(each => each !== 'null').join(' | ') : String(type ?? 'any')
}

function descriptionOf({ description, anyOf = [], items }: Schema): string {
  return description ?? anyOf.map(descriptionOf).find(Boolean) ?? (items ? descriptionOf(items) : '')
}

function answers({ responses }: Operation): Html {
  const successes = Object.entries(responses).filter(([status]) => status < '400')
  return html`<h2>${texts.docs.answers}</h2>${successes.map(([status, { description, content }]) => {
    const example = Object.values(content ?? {})[0]?.example
    const text = typeof example === 'string' ? example : JSON.stringify(example, null, 2)
    return html`<p><strong>${status}</strong> ${inlineMarkup(description)}</p>${example === undefined ? '' : codeBlock({ language: 'json', text }, `answer-${status}`)}`
  })}`
}

function errorCodes({ responses }: Operation): Html {
  const refusals = Object.entries(responses).filter(([status]) => status >= '400')
  if (refusals.length === 0) return html``
  return html`<h2>${texts.docs.errors}</h2><dl class="pairs">${refusals.map(
    ([status, { description, content }]) => {
      const codes = Object.keys(content?.['application/problem+json']?.examples ?? {})
      const links = codes.map(code => html`<a href="/errors/${code}"><code>${code}</code></a> `)
      return html`<div><dt>${status}</dt><dd>${links.length > 0 ? links : inlineMarkup(description)}</dd></div>`
    },
  )}</dl>`
}
